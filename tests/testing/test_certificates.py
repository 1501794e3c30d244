"""Ids open with their recorded texts; the sweep: every property, and pickles in another process."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from vlgym.cli.registry_cmd import first_party_specs
from vlgym.games.multi import MultiVLEnv
from vlgym.registry import get_registry
from vlgym.registry.making import build
from vlgym.registry.recorded import compare_recorded
from vlgym.testing import certify
from vlgym.testing.playing import GARBAGE, digest_picture

SPECS = first_party_specs(get_registry())


MODULES = {spec.entry_point.partition(":")[0]: env_id for env_id, spec in SPECS.items()}
OTHERS = (pytest.param(env_id, marks=pytest.mark.exhaustive) for env_id in sorted(SPECS.keys() - MODULES.values()))


@pytest.mark.parametrize("env_id", [*MODULES.values(), *OTHERS])
def test_an_id_opens_and_steps(env_id: str) -> None:
    env = build(SPECS[env_id])
    for observation in (env.reset(seed=0)[0], env.step(GARBAGE)[0]):
        assert env.observation_space.contains(observation)
    env.close()


@pytest.mark.parametrize("env_id", SPECS)
def test_every_id_has_its_recorded_card_prompt_and_parsers(env_id: str) -> None:
    compared = compare_recorded(get_registry(), env_id)
    assert (compared.differences, compared.error) == ((), None)


@pytest.mark.exhaustive
@pytest.mark.parametrize("env_id", SPECS)
def test_an_environment_earns_the_certificate(env_id: str) -> None:
    certificate = certify(env_id, only=["recorded"] if SPECS[env_id].replaced_by else None)
    assert [(each.name, each.evidence) for each in certificate.results if not each.passed] == []


def go_on(env: Any) -> list[Any]:
    """Play up to 3 samples, and begin the next episode; return all results."""
    seen: list[Any] = []
    while len(seen) < 3 and not (seen and (seen[-1][3] or seen[-1][4])):
        reply = env.action_space.sample()
        observation, *rest = env.step(reply)
        seen.append((reply, digest_picture(observation["image"]), *rest, observation["text"]))
    seen.append(env.reset()[0]["text"])
    env.close()
    return seen


ELSEWHERE = """
import pickle, sys
from test_certificates import go_on
print(repr(go_on(pickle.load(sys.stdin.buffer))))
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("env_id", SPECS)
def test_a_pickle_of_every_seat_goes_on_in_another_process(env_id: str) -> None:
    game: Any = build(SPECS[env_id])
    seats = [{"seat": seat} for seat in range(game.seats)] if isinstance(game, MultiVLEnv) else [{}]
    game.close()
    for arguments in seats:
        env = gymnasium.make(env_id, disable_env_checker=True, **arguments)
        env.reset(seed=7)
        env.action_space.seed(1)
        if env.unwrapped.max_turns > 1:  # type: ignore[attr-defined]
            env.step(GARBAGE)
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE], input=pickle.dumps(env), capture_output=True, cwd=Path(__file__).parent
        )
        assert done.stdout.decode() == f"{go_on(env)!r}\n", done.stderr.decode()[-500:]

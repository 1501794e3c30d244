"""Writes run folders as `vlgym eval` does: real episodes, played by a policy."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from toys import installed, make_entry, make_spec, make_walk

from vlgym.env.prompts import PromptBuilder
from vlgym.evaluation.plan import name_part
from vlgym.files import seal, unseal
from vlgym.play.policies import Policy
from vlgym.play.rollout import Runner, run_episodes
from vlgym.play.trajectory import TrajectoryWriter, describe_run
from vlgym.registry.making import make, unwrap
from vlgym.registry.recorded import hash_texts
from vlgym.types import Reply, Turn, Usage

WALK, COIN = "vlgym/Walk-v0", "vlgym/Coin-v0"


@contextmanager
def toys_installed() -> Iterator[None]:
    """Walk, with floor 0.25 and ceiling 1, and Coin, which registry.yaml does not know."""
    coin = make_spec(COIN, "toys:Coin", max_turns=6, reward_range=(-1.0, 2.0), summary="Say heads three times.")
    walk = make_spec(WALK)
    with installed(walk, coin, known={WALK: make_entry(walk, **hash_texts(make_walk()))}):
        yield


class Counting:
    """A policy's replies, with a made-up usage that follows from the text."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.name = policy, "counting"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [
            replace(reply, usage=Usage(100 + turn.turn, len(reply.text), 0.5 + turn.turn, 1))
            for turn, reply in zip(turns, self.policy.reply(turns), strict=True)
        ]


def write_run(
    folder: Path, policy: Policy | Mapping[str, Policy], env_ids: Sequence[str] = (WALK,), *,
    episodes: int = 10, repeats: int = 1, pictures: Sequence[str] = ("shown",),
    items: Sequence[Mapping[str, Any]] = ({},), prices: tuple[float, float] | None = None,
    changed: bool = False, split: str = "test", arguments: Mapping[str, Any] | None = None,
    builder: PromptBuilder | None = None, finish: int | None = None, **header: Any,
) -> Path:  # fmt: skip
    """Play and write a run, with a policy for all or for each kind of pictures.

    `finish` is the number of episodes after which each part stops.
    """
    policies = policy if isinstance(policy, Mapping) else dict.fromkeys(pictures, policy)
    parts, played = {}, []
    run: dict[str, Any] = {}
    for env_id in env_ids:
        for kind in pictures:
            key = name_part(env_id, "online", kind)
            finished = []
            for number, item in enumerate(items):
                envs = [make(env_id, **item, **(arguments or {})) for _ in range(3)]
                run = describe_run(map(unwrap, envs), builder=builder, policy=policies[kind], split=split)
                runner = Runner(
                    envs, split=split, first_episode=number * episodes * repeats,
                    episodes=episodes * repeats, repeats=repeats, part=key, builder=builder,
                )  # fmt: skip
                finished += list(run_episodes(runner, policies[kind]))
            parts[key] = {
                **run["environments"][env_id], "env_id": env_id, "planner": "online",
                "pictures": kind, "split": split, "items": [dict(item) for item in items],
                "episodes": episodes, "repeats": repeats, **({"changed": True} if changed else {}),
            }  # fmt: skip
            played += finished[:finish]
    head = {
        "format": 4, "kind": "evaluation", "policy": run["policy"], "split": split, "parts": parts,
        "versions": run["versions"],
        "sessions": [{"command": ["vlgym", "eval"], "started": "2026-01-01T00:00:00"}],
        **({"prices": {"in": prices[0], "out": prices[1]}} if prices else {}), **header,
    }  # fmt: skip
    writer = TrajectoryWriter(folder, head)
    for episode in played:
        writer.write(episode)
    return folder


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of metadata.jsonl, without their checksums."""
    lines = (folder / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    return [unseal(json.loads(line)) for line in lines]


def write_rows(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the lines of metadata.jsonl."""
    text = "".join(json.dumps(seal(row)) + "\n" for row in rows)
    (folder / "metadata.jsonl").write_text(text, encoding="utf-8")


def change_header(folder: Path, **changes: Any) -> None:
    """Change run.json; `None` takes a key away."""
    path = folder / "run.json"
    header = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    fields = {name: value for name, value in header.items() if value is not None}
    path.write_text(json.dumps(seal(fields)), encoding="utf-8")

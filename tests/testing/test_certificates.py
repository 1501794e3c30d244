"""Every id opens with the texts that registry.yaml records; the sweep: every property of every current environment, and
the recorded behaviour of every earlier version, in default settings."""

from __future__ import annotations

import pytest

from vlgym.cli.registry_cmd import first_party_specs
from vlgym.registry import get_registry
from vlgym.registry.making import build
from vlgym.registry.recorded import compare_recorded
from vlgym.testing import certify
from vlgym.testing.playing import GARBAGE

SPECS = first_party_specs(get_registry())


@pytest.mark.parametrize("env_id", SPECS)
def test_every_id_opens_steps_and_has_its_recorded_card_prompt_and_parsers(env_id: str) -> None:
    env = build(SPECS[env_id])
    for observation in (env.reset(seed=0)[0], env.step(GARBAGE)[0]):
        assert env.observation_space.contains(observation)
    env.close()
    compared = compare_recorded(get_registry(), env_id)
    assert (compared.differences, compared.error) == ((), None)


@pytest.mark.exhaustive
@pytest.mark.parametrize("env_id", SPECS)
def test_an_environment_earns_the_certificate(env_id: str) -> None:
    certificate = certify(env_id, only=["recorded"] if SPECS[env_id].replaced_by else None)
    assert [(each.name, each.evidence) for each in certificate.results if not each.passed] == []

"""registry.yaml records what the installed environments do: what `vlgym registry check` compares, one test for each id.

A test runs in the worker that holds the environment's certificate, so that engines and browsers start once for both.
"""

from __future__ import annotations

import pytest

from vlgym.cli.catalogue import first_party_specs
from vlgym.cli.registry_cmd import list_suites
from vlgym.registry import get_registry
from vlgym.registry_file import PACKAGED, compare_registries, read_registry, read_suites
from vlgym.testing import count_episodes, measure_hashes

RECORDED = read_registry(PACKAGED)
INSTALLED = first_party_specs(get_registry())
IDS = sorted({*RECORDED, *INSTALLED})


@pytest.mark.parametrize("env_id", [pytest.param(env_id, marks=pytest.mark.xdist_group(env_id)) for env_id in IDS])
def test_an_entry_is_what_the_installed_environment_does(env_id: str) -> None:
    recorded = {env_id: RECORDED[env_id]} if env_id in RECORDED else {}
    owner = get_registry().owner
    live = {env_id: measure_hashes(INSTALLED[env_id], owner[env_id])} if env_id in INSTALLED else {}
    assert compare_registries(recorded, live) == [], "run: vlgym registry write"


@pytest.mark.parametrize("env_id", sorted(RECORDED))
def test_floor_blind_floor_and_ceiling_rest_on_as_many_episodes_as_the_rule_says(env_id: str) -> None:
    entry = RECORDED[env_id]
    episodes = count_episodes(entry["spec"])
    assert episodes >= 100
    for name in ("floor", "blind", "ceiling"):
        known = entry.get(name)
        assert known is None or known["episodes"] == episodes, f"run: vlgym registry write --id {env_id}"


def test_the_suites_are_those_that_the_plugins_contribute() -> None:
    assert read_suites(PACKAGED) == list_suites(get_registry()), "run: vlgym registry write"

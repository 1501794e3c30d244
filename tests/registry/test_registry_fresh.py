"""registry.yaml records what the installed environments do, as `vlgym check` compares them.

The conformance kit's check `recorded` compares one environment, in each plugin's own tests. The
tests here are for the file as a whole.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from vlgym.cli.registry_cmd import collect_suites, first_party_specs
from vlgym.registry import get_registry
from vlgym.registry.registry_file import PACKAGED, read_registry, read_suites
from vlgym.reports.records import read_run
from vlgym.testing import count_episodes

ROOT = Path(__file__).resolve().parents[2]
RECORDED = read_registry(PACKAGED)
INSTALLED = first_party_specs(get_registry())


def test_ids_and_distributions_are_those_of_the_plugins() -> None:
    owner = get_registry().owner
    assert set(RECORDED) == set(INSTALLED), "run: vlgym registry"
    assert {id_: entry["distribution"] for id_, entry in RECORDED.items()} == {id_: owner[id_] for id_ in RECORDED}


def test_floors_and_ceiling_rest_on_as_many_episodes_as_the_rule_says() -> None:
    for env_id, entry in RECORDED.items():
        episodes = count_episodes(entry["spec"])
        assert episodes >= 100
        for name in ("floor", "blind", "ceiling"):
            known = entry.get(name)
            assert known is None or known["episodes"] == episodes, f"run: vlgym registry --id {env_id}"


def test_the_suites_are_those_that_the_plugins_contribute() -> None:
    assert read_suites(PACKAGED) == collect_suites(get_registry()), "run: vlgym registry"


@pytest.mark.parametrize("folder", sorted((ROOT / "docs" / "results").iterdir()), ids=lambda folder: folder.name)
def test_every_row_of_the_leaderboard_is_of_todays_environments(folder: Path) -> None:
    run = read_run(folder)
    assert run.split == "test"
    for part in run.parts.values():
        due, said = RECORDED[part.env_id], part.entry
        found = (said["spec_hash"], said["prompt_hash"], f"{said['parser']}-v{said['parser_version']}")
        again = "play it again: docs/results.md has the command"
        assert found == (due["spec"].digest(), due["prompt_hash"], due["parser_hash"]), again
        assert not part.changed

"""The specs and the suite: what they promise, and that reading them costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from vlgym_sight.plugin import EPISODES, PROBES, vlgym_envs, vlgym_suites

from vlgym.making import build
from vlgym.registry import get_registry
from vlgym.spec import EnvSpec


def test_the_plugin_offers_eight_probes() -> None:
    titles = ["SeeDigit", "SeeColour", "SeeSide", "SeeCount", "SeeText", "SeeCard", "SeeCell", "SeeHistory"]
    assert [spec.title for spec in vlgym_envs()] == titles


def test_every_probe_is_a_part_of_the_suite() -> None:
    assert {part.suite for part in vlgym_suites()} == {"can-it-see"}
    assert {part.env_id for part in get_registry().suite("can-it-see")} >= {spec.id for spec in PROBES}
    assert all((part.items, part.episodes, part.repeats) == (({},), EPISODES, 1) for part in vlgym_suites())


@pytest.mark.parametrize("spec", PROBES, ids=lambda spec: spec.title)
def test_the_prompt_holds_as_many_pictures_as_the_episode_has(spec: EnvSpec) -> None:
    assert spec.history_images == spec.max_turns
    assert spec.history_turns == spec.max_turns - 1
    assert build(spec).prompt.version == spec.prompt_version


def test_reading_the_specs_imports_no_environment_code_and_no_drawing() -> None:
    code = (
        "import sys, vlgym_sight.plugin as p; p.vlgym_envs(); p.vlgym_suites();"
        "bad = [m for m in sys.modules if m.startswith('PIL') or m in ('vlgym_sight.drawing', 'vlgym_sight.question')];"
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr

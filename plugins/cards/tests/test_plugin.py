"""The specs: what they promise, and that reading them costs nothing."""

import subprocess
import sys
from dataclasses import replace

import pytest
from vlgym_cards.plugin import vlgym_envs

from vlgym.making import build


def test_the_plugin_offers_the_four_games_and_newer_versions_of_three() -> None:
    assert [spec.id for spec in vlgym_envs()] == [
        "vlgym/NumberLine-v0",
        "vlgym/EZPoints-v0",
        "vlgym/Points24-v0",
        "vlgym/Blackjack-v0",
        "vlgym/NumberLine-v1",
        "vlgym/EZPoints-v1",
        "vlgym/Points24-v1",
    ]
    newer = {spec.id: spec.replaced_by for spec in vlgym_envs() if spec.replaced_by}
    assert newer == {f"vlgym/{name}-v0": f"vlgym/{name}-v1" for name in ("NumberLine", "EZPoints", "Points24")}


@pytest.mark.parametrize("spec", vlgym_envs(), ids=lambda spec: spec.title)
def test_limit_and_image_size_come_from_the_spec_alone(spec) -> None:
    env = build(spec)
    assert (env.max_turns, env.image_size) == (spec.max_turns, (300, 300))
    assert env.prompt.version == spec.prompt_version
    assert build(replace(spec, image_size=(64, 96))).reset(seed=0)[0]["image"].shape == (64, 96, 3)


def test_reading_the_specs_imports_no_environment_code_and_no_drawing() -> None:
    code = (
        "import sys, vlgym_cards.plugin as p; p.vlgym_envs();"
        "bad = [m for m in sys.modules if m.startswith('PIL') or m in ('vlgym_cards.art', 'vlgym_cards.points24')];"
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr

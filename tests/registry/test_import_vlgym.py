"""`import vlgym` is light, registers every id, and reports each broken plugin in a line."""

import json
import os
import subprocess
import sys
from pathlib import Path

from toys import PLUGIN, install_plugin

import vlgym

LIGHT = """
import json, sys, warnings
before = warnings.formatwarning
import vlgym
modules = [spec.entry_point.split(":")[0] for spec in vlgym.get_registry().specs.values()]
heavy = ["torch", "transformers", "typer", "rich", "miniworld", "pyglet", "vlgym.testing", "vlgym.cli",
         "vlgym.browser.chromium", "selenium", "psutil", "vlgym.endpoint", "openai", "httpx2"]
loaded = [name for name in modules + heavy if name in sys.modules]
print(json.dumps([loaded, warnings.formatwarning is before]))
"""
PLAY = """
import gymnasium, warnings
warnings.simplefilter("error")
import early_plugin, vlgym
known = "early/Walk-v0" in vlgym.get_registry().specs
print(gymnasium.make("good/Walk-v0").reset(seed=0)[1]["success"], known)
for env_id in ("twin/Walk-v0", "vlgym/NumberLine-v1", "vlgym/Mine-v0"):
    try:
        gymnasium.make(env_id)
    except vlgym.UserError as error:
        print(error)
"""


def run_python(code: str, *paths: Path, **switch: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process that has `paths` on its import path."""
    env = {**os.environ, "VLGYM_PLUGINS": "", "PYTHONWARNINGS": "", **switch}
    env["PYTHONPATH"] = os.pathsep.join([*map(str, paths), env.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)


def test_it_imports_nothing_heavy_prints_nothing_and_keeps_the_warning_format() -> None:
    done = run_python(LIGHT)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [[], True]


def test_the_public_list_exists_and_is_short() -> None:
    assert len(vlgym.__all__) <= 15
    for name in vlgym.__all__:
        assert getattr(vlgym, name).__doc__, name


def test_bad_plugins_leave_the_rest_alone(tmp_path: Path) -> None:
    sources = {
        "base": "class Odd(BaseException): pass\nraise Odd('odd')",
        "loud": PLUGIN.format(first="print('loading')", ids=["loud/Walk-v0"]),
        "evil": PLUGIN.format(first="", ids=["vlgym/NumberLine-v1", "vlgym/Mine-v0", "evil/Walk-v0"]),
        "twin": PLUGIN.format(first="", ids=["twin/Walk-v0"]),
        "other": PLUGIN.format(first="", ids=["twin/Walk-v0"]),
        **{name: PLUGIN.format(first="", ids=[f"{name}/Walk-v0"]) for name in ("good", "early")},
    }
    for name, source in sources.items():
        install_plugin(tmp_path, name, source)
    paths = (tmp_path, Path(__file__).parents[1])
    done = run_python(PLAY, *paths, VLGYM_PLUGINS=",".join(sources))
    good, clash, ours, new = done.stdout.splitlines()
    assert good == "False True"  # `early` was imported before vlgym
    assert clash.startswith("twin/Walk-v0 is claimed by two plugins: vlgym-other and vlgym-twin.")
    assert ours.startswith("vlgym/NumberLine-v1 lives in vlgym-cards")
    assert new.startswith("vlgym/Mine-v0 is claimed by vlgym-evil, refused")
    lines = {line.removeprefix("vlgym: ").partition(", refused")[0] for line in done.stderr.splitlines()}
    assert {line.partition("; ")[0] for line in lines} == {
        "loading", "plugin base (vlgym-base) failed to load: Odd: odd",
        "twin/Walk-v0 is claimed by vlgym-other and vlgym-twin",
        "vlgym-evil claims vlgym/Mine-v0, vlgym/NumberLine-v1",
    }  # fmt: skip
    assert "use another namespace" in done.stderr

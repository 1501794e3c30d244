"""The wheels of `make dist` install from a folder, without an index, and bring every file that they need."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from fresh import make_fresh, run_fresh
from sources import ROOT

FAMILIES = {path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")}
LIGHT = (
    "vlgym/NumberLine-v1", "vlgym/SeeDigit-v0", "vlgym/Sokoban-v0", "vlgym/LeducHoldem-v0", "vlgym/WebShop-v1",
    "vlgym/ALFWorld-v1",
)  # fmt: skip
"""Environments of families that read files of their package, and need no server of the system."""
PLAY = """
import json, pathlib, sys, vlgym

for env_id in {ids!r}:
    env = vlgym.make(env_id)
    env.reset(seed=0)
    env.step(env.solve())
    env.close()
registry = vlgym.get_registry()
places = [module.__file__ for name, module in list(sys.modules.items()) if name.split(".")[0].startswith("vlgym")]
inside = all(pathlib.Path(place).is_relative_to(sys.prefix) for place in places if place)
print(json.dumps([inside, len(registry.specs), [record.distribution for record in registry.plugins]]))
"""
pytestmark = [pytest.mark.xdist_group("dist"), pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sdists and wheels, of a copy of what git would give a stranger."""
    folder = tmp_path_factory.mktemp("dist")
    copy = folder / "copy"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(
        ["tar", "-cf", str(folder / "copy.tar"), "--null", "-T", "-"], input=listed, cwd=ROOT, check=True, timeout=300
    )
    with tarfile.open(folder / "copy.tar") as packed:
        packed.extractall(copy, filter="data")
    out = folder / "out"
    for source in (copy, *sorted(path.parent for path in copy.glob("plugins/*/pyproject.toml"))):
        call = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
        done = subprocess.run(call, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stderr
    return out


def test_each_distribution_has_an_sdist_and_a_wheel(dist: Path) -> None:
    names = {"vlgym", *(f"vlgym_{family}" for family in FAMILIES)}
    assert {path.name.split("-")[0] for path in dist.glob("*.whl")} == names
    assert {path.name.removesuffix("-0.1.0.tar.gz") for path in dist.glob("*.tar.gz")} == names


def test_all_of_them_install_from_the_folder_and_play(dist: Path, tmp_path: Path) -> None:
    python = make_fresh(tmp_path, [])
    wanted = ["vlgym", *(f"vlgym-{family}" for family in FAMILIES)]
    call = [str(python), "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--ignore-installed"]
    subprocess.run([*call, "--find-links", str(dist), *wanted], check=True, timeout=600, capture_output=True)
    code = tmp_path / "play.py"
    code.write_text(PLAY.format(ids=LIGHT))
    done = run_fresh(python, "-E", str(code), plugins=",".join(wanted[1:]), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    inside, count, plugins = json.loads(done.stdout.splitlines()[-1])
    assert inside
    assert count > 50
    assert set(plugins) >= {f"vlgym-{family}" for family in FAMILIES}


def test_the_light_extra_installs_by_pip_alone_and_plays(dist: Path, tmp_path: Path) -> None:
    """pip takes the dependencies from its index."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=300)
    scripts, home = tmp_path / "venv" / "bin", tmp_path / "home"
    call = [str(scripts / "python"), "-m", "pip", "install", "-q", "--find-links", str(dist), "vlgym[light]"]
    subprocess.run(call, check=True, timeout=600, capture_output=True)
    installed = [path.name.split("-")[0] for path in (tmp_path / "venv").rglob("*.dist-info")]
    assert {"vlgym", "vlgym_cards", "vlgym_sight", "vlgym_sokoban", "vlgym_outside"} <= set(installed)
    assert not {"torch", "scipy", "selenium", "miniworld"} & set(installed)
    home.mkdir()
    env = {"PATH": f"{scripts}:/usr/bin:/bin", "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    for command in (
        ["doctor"], ["list"], ["check", "vlgym/SokobanDrawn-v0", "--only", "recorded"],
        ["eval", "--policy", "oracle", "--env", "vlgym/NumberLine-v1,vlgym/SeeDigit-v0,vlgym/BabyAIGoTo-v0",
         "--episodes", "2", "--no-probe", "--out", "run"],
        ["new-plugin", "my-games"],
    ):  # fmt: skip
        done = subprocess.run(
            [str(scripts / "vlgym"), *command],
            cwd=home,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert '"success": 1.0' in (home / "run" / "report.json").read_text()

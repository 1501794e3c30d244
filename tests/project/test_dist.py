"""The wheels of `make dist` install from a folder, and bring every file that they need."""

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from sources import ROOT

from vlgym.registry.registry_file import read_registry

FAMILIES = {path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")}
pytestmark = [pytest.mark.xdist_group("dist"), pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sdists and wheels, of a copy of what git would give a stranger."""
    folder = tmp_path_factory.mktemp("dist")
    copy, packed, out = folder / "copy", folder / "copy.tar", folder / "out"
    options = {"cwd": ROOT, "check": True, "timeout": 300}
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, **options).stdout
    subprocess.run(["tar", "-cf", str(packed), "--null", "-T", "-"], input=listed, **options)
    with tarfile.open(packed) as archive:
        archive.extractall(copy, filter="data")
    for source in (copy, *sorted(path.parent for path in copy.glob("plugins/*/pyproject.toml"))):
        call = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
        done = subprocess.run(call, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
    return out


class Fresh:
    """A new environment without the clone on its path."""

    def __init__(self, folder: Path) -> None:
        self.home, self.scripts = folder / "home", folder / "venv" / "bin"
        self.home.mkdir()
        venv = [sys.executable, "-m", "venv", str(folder / "venv")]
        subprocess.run(venv, check=True, timeout=300)

    def run(self, words: str, *more: str) -> str:
        """Run a program of the environment in its home; return its output."""
        program, *words = [*words.split(), *more]
        cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        env = {"PATH": f"{self.scripts}:/usr/bin:/bin", "HOME": str(self.home)}
        env |= {"XDG_CACHE_HOME": cache, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        call, options = [str(self.scripts / program), *words], {"capture_output": True, "text": True}
        done = subprocess.run(call, cwd=self.home, env=env, timeout=1200, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, *wanted: str) -> set[str]:
        """Install; return the names of all installed distributions."""
        self.run("python -m pip install -q", *wanted)
        return {path.name.split("-")[0] for path in self.scripts.parent.rglob("*.dist-info")}

    def read_overall(self) -> dict[str, Any]:
        return json.loads((self.home / "run" / "report.json").read_text())["overall"]


def test_the_light_extra_installs_and_plays(dist: Path, tmp_path: Path) -> None:
    fresh = Fresh(tmp_path)
    names = fresh.install("--find-links", str(dist), "vlgym[light]")
    assert {"vlgym", "vlgym_cards", "vlgym_sight", "vlgym_sokoban", "vlgym_outside"} <= names
    assert not {"torch", "scipy", "selenium", "miniworld"} & names
    ids = "vlgym/NumberLine-v1,vlgym/SeeDigit-v0,vlgym/BabyAIGoTo-v0"
    for words in (
        "doctor", "list", "check vlgym/SokobanDrawn-v0 --only recorded", "new-plugin my-games",
        f"eval --policy oracle --env {ids} --episodes 2 --no-probe --out run",
    ):  # fmt: skip
        fresh.run(f"vlgym {words}")
    assert fresh.read_overall()["success"]["mean"] == 1.0


def test_all_families_install_and_train(dist: Path, tmp_path: Path) -> None:
    """Compiled parts come from the user's cache; torch from .venv's index."""
    fresh = Fresh(tmp_path)
    torch, pins = Path(sys.prefix) / "torch.txt", (ROOT / "constraints.txt").read_text()
    (pin,) = re.findall(r"^torch==.*", pins, re.MULTILINE)  # a newer one may be CUDA's
    fresh.install(*(("-r", str(torch)) if torch.is_file() else ()), pin)
    names = fresh.install("--find-links", str(dist), "vlgym[all,train]")
    assert {"vlgym", "torch", *(f"vlgym_{family}" for family in FAMILIES)} <= names
    fresh.run("python -m vlgym_football.build")
    fresh.run("vlgym doctor")
    specs = {env_id: entry["spec"] for env_id, entry in read_registry().items()}
    first = {spec.family: env_id for env_id, spec in specs.items() if not spec.replaced_by}
    assert first.keys() == FAMILIES
    ids = ",".join(first.values())
    fresh.run(f"vlgym eval --policy oracle --env {ids} --episodes 1 --no-probe --out run")
    assert fresh.read_overall()["parts"] == len(FAMILIES)
    fresh.run("python -m baselines.vldac --env vlgym/NumberLine-v1 --updates 2 --out trained")
    assert len((fresh.home / "trained" / "log.jsonl").read_text().splitlines()) == 2
    fresh.run("vlgym new-plugin my-games")
    fresh.install("-e", "vlgym-my-games", "pytest")
    assert " passed" in fresh.run("python -m pytest -q vlgym-my-games")

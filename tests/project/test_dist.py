"""The wheels of `make dist` install from a folder, and bring every file that they need."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from sources import ROOT

from vlgym.registry.registry_file import read_registry

FAMILIES = {path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")}
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


class Fresh:
    """A new environment without the clone on its path; `seconds` has each command's time."""

    def __init__(self, folder: Path) -> None:
        self.home, self.scripts = folder / "home", folder / "venv" / "bin"
        self.home.mkdir()
        self.seconds: list[tuple[int, str]] = []
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=300)

    def run(self, *command: str) -> str:
        """Run a program of the environment in its home; return what it said."""
        env = {"PATH": f"{self.scripts}:/usr/bin:/bin", "HOME": str(self.home), "PYTHONDONTWRITEBYTECODE": "1"}
        env |= {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")), "OMP_NUM_THREADS": "1"}
        began = time.monotonic()
        call = [str(self.scripts / command[0]), *command[1:]]
        done = subprocess.run(call, cwd=self.home, env=env, capture_output=True, text=True, timeout=1200)
        assert done.returncode == 0, done.stdout + done.stderr
        self.seconds.append((round(time.monotonic() - began), " ".join(command)[:90]))
        return done.stdout

    def install(self, *wanted: str) -> None:
        self.run("python", "-m", "pip", "install", "-q", *wanted)

    def list_installed(self) -> set[str]:
        """The names of the installed distributions."""
        return {path.name.split("-")[0] for path in self.scripts.parent.rglob("*.dist-info")}


def test_the_light_extra_installs_and_plays(dist: Path, tmp_path: Path, record_property) -> None:
    fresh = Fresh(tmp_path)
    fresh.install("--find-links", str(dist), "vlgym[light]")
    assert {"vlgym", "vlgym_cards", "vlgym_sight", "vlgym_sokoban", "vlgym_outside"} <= fresh.list_installed()
    assert not {"torch", "scipy", "selenium", "miniworld"} & fresh.list_installed()
    for command in (
        ["doctor"], ["list"], ["check", "vlgym/SokobanDrawn-v0", "--only", "recorded"],
        ["eval", "--policy", "oracle", "--env", "vlgym/NumberLine-v1,vlgym/SeeDigit-v0,vlgym/BabyAIGoTo-v0",
         "--episodes", "2", "--no-probe", "--out", "run"],
        ["new-plugin", "my-games"],
    ):  # fmt: skip
        fresh.run("vlgym", *command)
    assert '"success": 1.0' in (fresh.home / "run" / "report.json").read_text()
    record_property("seconds", fresh.seconds)


def test_all_families_install_and_train(dist: Path, tmp_path: Path, record_property) -> None:
    """Compiled parts come from the user's cache; torch from .venv's index."""
    fresh = Fresh(tmp_path)
    torch = Path(sys.prefix) / "torch.txt"
    pin = re.search(r"^torch==.*", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[0]  # a newer one may be CUDA's
    fresh.install(*(("-r", str(torch)) if torch.is_file() else ()), pin)
    fresh.install("--find-links", str(dist), "vlgym[all,train]")
    fresh.run("python", "-m", "vlgym_football.build")
    assert {"vlgym", "torch", *(f"vlgym_{family}" for family in FAMILIES)} <= fresh.list_installed()
    fresh.run("python", "-c", "import vlgym")
    fresh.run("vlgym", "doctor")
    first = {each["spec"].family: env_id for env_id, each in read_registry().items() if not each["spec"].replaced_by}
    assert first.keys() == FAMILIES
    fresh.run(
        "vlgym", "eval", "--policy", "oracle", "--env", ",".join(first.values()), "--episodes", "1", "--no-probe",
        "--out", "run",
    )  # fmt: skip
    results = json.loads((fresh.home / "run" / "report.json").read_text())["overall"]
    assert results["parts"] == len(FAMILIES)
    fresh.run("python", "-m", "baselines.vldac", "--env", "vlgym/NumberLine-v1", "--updates", "2", "--out", "trained")
    assert len((fresh.home / "trained" / "log.jsonl").read_text().splitlines()) == 2
    fresh.run("vlgym", "new-plugin", "my-games")
    fresh.install("-e", "vlgym-my-games", "pytest")
    assert " passed" in fresh.run("python", "-m", "pytest", "-q", "vlgym-my-games")
    record_property("seconds", fresh.seconds)

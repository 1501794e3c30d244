"""The packaging metadata agree with the folders: extras, versions, packages, pins."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = {path.parent.name: path.read_text() for path in ROOT.glob("plugins/*/pyproject.toml")}
PLUGINS = {family: tomllib.loads(text)["project"] for family, text in FILES.items()}
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


def build(folder: Path, hook: str, work: Path) -> zipfile.ZipFile:
    """Build a wheel of a copy of a distribution's folder by a hook of its build backend."""
    left = shutil.ignore_patterns("*.egg-info", "__pycache__")
    top = shutil.ignore_patterns(".*", "build", "runs", "*.egg-info")

    def leave_out(place: str, names: list[str]) -> set[str]:
        return (top if Path(place) == folder else left)(place, names)

    shutil.copytree(folder, work / "source", ignore=leave_out)
    command = [sys.executable, "-c", BUILD, hook, str(work)]
    done = subprocess.run(command, cwd=work / "source", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return zipfile.ZipFile(next(work.glob("*.whl")))


@pytest.mark.exhaustive
@pytest.mark.parametrize("folder", [".", *(f"plugins/{family}" for family in sorted(PLUGINS))])
def test_an_editable_install_leaves_a_plain_path(folder: str, tmp_path: Path) -> None:
    wheel = build(ROOT / folder, "build_editable", tmp_path)
    files = [name for name in wheel.namelist() if ".dist-info/" not in name]
    paths = [line for name in files for line in wheel.read(name).decode().splitlines()]
    assert [Path(name).suffix for name in files] == [".pth"]
    assert [Path(path).is_relative_to(tmp_path / "source") for path in paths] == [True]


FOLDERS = [pytest.param(f"plugins/{each}", marks=pytest.mark.exhaustive) for each in sorted(PLUGINS)]


@pytest.mark.parametrize("folder", [".", *FOLDERS])
def test_a_wheel_holds_the_packages_alone(folder: str, tmp_path: Path) -> None:
    wheel = build(ROOT / folder, "build_wheel", tmp_path)
    source = tmp_path / "source" / ("src" if folder != "." else "")
    packages = [path.name for path in source.iterdir() if (path / "__init__.py").exists()]
    files = [path for package in packages for path in (source / package).rglob("*") if path.is_file()]
    expected = {path.relative_to(source).as_posix() for path in files if path.name != "README.md"}
    expected = {name for name in expected if not name.startswith("baselines/studies/")}
    assert not [name for name in expected if re.search(r"(^|/)(tests?|docs|studies)/", name)]
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected
    own = ["baselines", "vlgym"] if folder == "." else [f"vlgym_{Path(folder).name}"]
    assert sorted(packages) == own
    if folder == ".":
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel.namelist())


def test_every_plugin_has_an_extra_of_its_family_name_and_is_in_all() -> None:
    extras = CORE["optional-dependencies"]
    expected = {family: [f"vlgym-{family}>=0.1,<0.2"] for family in PLUGINS}
    assert {family: extras.get(family) for family in expected} == expected
    assert sorted(extras["all"]) == sorted(item for items in expected.values() for item in items)
    assert set(extras["light"]) <= set(extras["all"])
    others = {"all", "light", "train", "eval", "export", "openenv", "ray", "smollm2", "trl", "ui"}
    assert set(extras) == {*expected, *others}


def test_a_plugin_is_named_after_its_folder_and_says_its_origin() -> None:
    for family, project in PLUGINS.items():
        assert project["name"] == f"vlgym-{family}"
        assert project["entry-points"]["vlgym"] == {family: f"vlgym_{family}.plugin"}
        assert "vlgym>=0.1,<0.2" in project["dependencies"]
        for name in ("version", "requires-python"):
            assert project[name] == CORE[name]
        _, origin = project["description"].split(". ")  # every card prints the second sentence
        assert re.search(r"\b(ours|drawn here|package's|packages)\b", origin), family
        assert len(origin) <= 120, family  # two lines of a card


def test_the_version_in_the_code_is_the_distributions() -> None:
    assert f'__version__ = "{CORE["version"]}"' in (ROOT / "vlgym" / "__init__.py").read_text()
    assert f"\nversion: {CORE['version']}\n" in (ROOT / "CITATION.cff").read_text()


def test_every_direct_dependency_is_pinned_for_the_tests() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    extras = CORE["optional-dependencies"]
    wanted = [*CORE["dependencies"], *extras["train"], *extras["eval"]]
    wanted += [item for project in PLUGINS.values() for item in project["dependencies"]]
    wanted += [item for items in groups.values() for item in items]
    names = {re.split(r"[<>=!\[ ;]", item)[0].lower().replace("_", "-") for item in wanted}
    pins = re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    missing = names - {pin.lower().replace("_", "-") for pin in pins}
    assert [name for name in missing if not name.startswith("vlgym")] == []


def test_the_actions_of_the_workflows_are_pinned_to_commits() -> None:
    """A tag can be moved to other code."""
    text = "".join(path.read_text() for path in (ROOT / ".github/workflows").iterdir())
    used = re.findall(r"^ +- uses: (.*)$", text, re.MULTILINE)
    assert len(used) >= 6
    pinned = re.compile(r"[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
    assert [line for line in used if not pinned.fullmatch(line)] == []


@pytest.mark.xdist_group("one worker")
def test_a_group_of_tests_stays_in_one_worker(request: pytest.FixtureRequest) -> None:
    # So pytest-xdist tells groups apart; it fails silently otherwise.
    split = request.config.getoption("loadgroup", False)
    assert not split or request.node.nodeid.endswith("@one worker"), "see constraints.txt"

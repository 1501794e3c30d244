"""The packaging metadata agree with the folders: extras, versions, entry points, contents of the built packages, the
versions that tests pin; and README, Makefile and CI name the same commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PLUGINS = {
    path.parent.name: tomllib.loads(path.read_text())["project"] for path in ROOT.glob("plugins/*/pyproject.toml")
}
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


def build(folder: Path, hook: str, work: Path) -> zipfile.ZipFile:
    """Build a wheel of a copy of a distribution's folder by a hook of its build backend."""
    left = shutil.ignore_patterns("*.egg-info", "__pycache__")
    top = shutil.ignore_patterns(".*", "build", "runs", "*.egg-info")
    shutil.copytree(folder, work / "source", ignore=lambda at, names: (top if Path(at) == folder else left)(at, names))
    command = [sys.executable, "-c", BUILD, hook, str(work)]
    done = subprocess.run(command, cwd=work / "source", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return zipfile.ZipFile(next(work.glob("*.whl")))


@pytest.mark.parametrize("folder", [".", *(f"plugins/{family}" for family in sorted(PLUGINS))])
def test_an_editable_install_leaves_a_plain_path_and_no_import_hook(folder: str, tmp_path: Path) -> None:
    wheel = build(ROOT / folder, "build_editable", tmp_path)
    files = [name for name in wheel.namelist() if ".dist-info/" not in name]
    paths = [line for name in files for line in wheel.read(name).decode().splitlines()]
    assert [Path(name).suffix for name in files] == [".pth"]
    assert [Path(path).is_relative_to(tmp_path / "source") for path in paths] == [True]


@pytest.mark.parametrize("folder", [".", *(f"plugins/{family}" for family in sorted(PLUGINS))])
def test_a_wheel_holds_the_packages_with_all_their_files_and_nothing_else(folder: str, tmp_path: Path) -> None:
    wheel = build(ROOT / folder, "build_wheel", tmp_path)
    source = tmp_path / "source" / ("src" if folder != "." else "")
    packages = [path.name for path in source.iterdir() if (path / "__init__.py").exists()]
    files = [path for package in packages for path in (source / package).rglob("*") if path.is_file()]
    expected = {path.relative_to(source).as_posix() for path in files if path.name != "README.md"}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected
    assert sorted(packages) == (["baselines", "vlgym"] if folder == "." else [f"vlgym_{Path(folder).name}"])
    if folder == ".":
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel.namelist())


def test_every_plugin_has_an_extra_of_its_family_name_and_all_names_them_all() -> None:
    extras = CORE["optional-dependencies"]
    expected = {family: [f"vlgym-{family}>=0.1,<0.2"] for family in PLUGINS}
    assert {family: extras.get(family) for family in expected} == expected
    assert sorted(extras["all"]) == sorted(item for items in expected.values() for item in items)
    assert set(extras) == {*expected, "all", "train", "eval", "export", "quant", "ray", "ui"}


@pytest.mark.parametrize("family", sorted(PLUGINS))
def test_a_plugin_is_named_after_its_folder_and_found_through_its_entry_point(family: str) -> None:
    project = PLUGINS[family]
    assert project["name"] == f"vlgym-{family}"
    assert project["version"] == CORE["version"]
    assert project["entry-points"]["vlgym"] == {family: f"vlgym_{family}.plugin"}
    assert "vlgym>=0.1,<0.2" in project["dependencies"]
    assert project["requires-python"] == CORE["requires-python"]
    assert (ROOT / "plugins" / family / "README.md").exists()


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
    text = (ROOT / "constraints.txt").read_text()
    pinned = {match.lower().replace("_", "-") for match in re.findall(r"^([\w-]+)==", text, re.MULTILINE)}
    assert sorted(name for name in names - pinned if not name.startswith("vlgym")) == []


def test_the_readme_the_makefile_and_ci_name_the_same_commands() -> None:
    section = (ROOT / "README.md").read_text().split("## Two commands")[1].split("\n## ")[0]
    readme = re.findall(r"^make (\w+)", section, re.MULTILINE)
    ci = re.findall(r"^make (\w+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    targets = set(re.findall(r"^([\w-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    contributing = re.findall(r"^make (\w+)", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert readme == ["demo", "test"]
    assert ci == ["demo", "lint", "test", "servers"]
    assert {*ci, *contributing} <= targets


def test_every_demo_gets_a_new_folder_unless_one_is_named() -> None:
    calls = [["make", "-n", "demo", *more] for more in ([], ["SEED=1"], ["OUT=runs/mine"])]
    shown = [subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True).stdout for call in calls]
    assert ["--out" in text for text in shown] == [False, False, True]
    assert "--seed 1" in shown[1]
    assert "--out runs/mine" in shown[2]


@pytest.mark.parametrize("target", ["demo", "test", "servers"])
def test_the_shell_can_read_what_make_gives_it(target: str, tmp_path: Path) -> None:
    call = ["make", "-n", target, f"VENV={tmp_path / 'new'}", f"SERVERS={tmp_path / 'servers'}", "TORCH=cpu"]
    recipes = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "pip" in recipes  # a new environment asks for every step
    read = subprocess.run(["sh", "-n"], input=recipes, capture_output=True, text=True, check=False)
    assert not read.returncode, read.stderr


@pytest.mark.xdist_group("one worker")
def test_a_group_of_tests_stays_in_one_worker(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("loadgroup", False):  # so pytest-xdist tells groups apart; it fails silently otherwise
        assert request.node.nodeid.endswith("@one worker"), "pytest-xdist ignores the groups; see constraints.txt"


def ask_for_torch(folder: Path, *settings: str) -> tuple[str, str]:
    """What `make` says of torch, and what pip is then given, in a virtual environment that holds nothing but a name."""
    (folder / "bin").mkdir(exist_ok=True)
    if not (folder / "bin" / "python").exists():
        (folder / "bin" / "python").symlink_to(sys.executable)
    wanted = folder / "torch.txt"
    environment = {name: value for name, value in os.environ.items() if name not in ("TORCH", "MAKEFLAGS")}
    done = subprocess.run(
        ["make", f"VENV={folder}", str(wanted), *settings], cwd=ROOT, capture_output=True, text=True, env=environment,
        check=False,
    )  # fmt: skip
    return done.stdout + done.stderr, wanted.read_text() if wanted.exists() else ""


def test_torch_is_a_cpu_build_where_pytorchs_index_answers(tmp_path: Path) -> None:
    class Empty(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        index = f"http://127.0.0.1:{server.server_port}"
        said, wanted = ask_for_torch(tmp_path, "TORCH=cpu", f"TORCH_INDEX={index}")
        server.shutdown()
    assert f"torch: the CPU build of {index} (TORCH=cpu; the other: TORCH=default)" in said
    assert wanted.splitlines() == ["# TORCH=cpu", "torch", f"--extra-index-url {index}"]


def test_torch_comes_from_the_usual_index_where_pytorchs_does_not_answer_and_make_says_so(tmp_path: Path) -> None:
    said, wanted = ask_for_torch(tmp_path, "TORCH=cpu", "TORCH_INDEX=http://127.0.0.1:1")
    assert "http://127.0.0.1:1 does not answer; pip's usual index is asked" in said
    assert wanted.splitlines() == ["# TORCH=cpu", "torch"]


def test_the_usual_build_of_torch_is_taken_where_there_is_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia-smi").touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    said, _ = ask_for_torch(tmp_path)
    assert "torch: the build of pip's usual index (TORCH=default; the other: TORCH=cpu)" in said


def test_the_usual_build_of_torch_can_be_asked_for_and_another_wish_is_refused(tmp_path: Path) -> None:
    said, wanted = ask_for_torch(tmp_path, "TORCH=default")
    assert "torch: the build of pip's usual index" in said
    assert wanted.splitlines() == ["# TORCH=default", "torch"]
    said, _ = ask_for_torch(tmp_path, "TORCH=cpu")
    assert "was made with TORCH=default; for TORCH=cpu begin again with `make clean`" in said
    (tmp_path / "torch.txt").unlink()
    said, wanted = ask_for_torch(tmp_path, "TORCH=cup")
    assert ("TORCH=cup is not one of cpu and default" in said, wanted) == (True, "")

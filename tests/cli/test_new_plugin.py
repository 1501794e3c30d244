"""A stranger's plugins: built, installed into a fresh environment, certified and played."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from commands import invoke

from vlgym.cli.new_plugin import new_plugin
from vlgym.errors import UserError
from vlgym.files import write_whole
from vlgym.play.trajectory import read_trajectories
from vlgym.testing import ALL_CHECKS

pytestmark = pytest.mark.xdist_group("new plugin")  # one worker, so that the environment is made once
FIXTURES = Path(__file__).parents[1] / "fixtures"
PLUGINS = "vlgym-tea-room,vlgym-stone-pile,vlgym-example,vlgym-tutorial"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two new plugins: an environment and a game."""
    folder = tmp_path_factory.mktemp("written")
    invoke("new-plugin", "tea-room", "--out", folder)
    invoke("new-plugin", "stone-pile", "--multi-agent", "--out", folder)
    return folder


@pytest.fixture(scope="module")
def python(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment with all plugins but one, which the page for agents brings.

    Heavy dependencies are shared from this environment by a path file.
    """
    folder = tmp_path_factory.mktemp("fresh")
    sources = [written / "vlgym-stone-pile", FIXTURES / "vlgym_example", FIXTURES / "vlgym_tutorial"]
    copies = [str(shutil.copytree(source, folder / source.name)) for source in sources]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True, timeout=300)
    python = folder / "venv" / "bin" / "python"
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    site = Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
    shared = {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]}
    (site / "shared.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in sorted(shared)))
    install = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, *copies], check=True, timeout=300)
    return python


def run(python: Path, *words: str, cwd: Path) -> str:
    """Run the fresh environment's Python with only these plugins switched on; return its output."""
    env = {**os.environ, "VLGYM_PLUGINS": PLUGINS, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([str(python), *words], capture_output=True, text=True, timeout=600, env=env, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_package_has_all_that_a_repository_needs(written: Path) -> None:
    folder = written / "vlgym-tea-room"
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == [
        ".github/workflows/test.yml", ".gitignore", "LICENSE", "README.md", "pyproject.toml",
        "src/vlgym_tea_room/__init__.py", "src/vlgym_tea_room/environment.py", "src/vlgym_tea_room/plugin.py",
        "tests/test_contract.py", "tests/test_environment.py",
    ]  # fmt: skip
    assert not [path for path in written.iterdir() if path.name.startswith(".")]  # nothing else is left


@pytest.mark.parametrize("tests", ["tests/test_environment.py", pytest.param("tests", marks=pytest.mark.exhaustive)])
def test_a_games_own_tests_pass(tests: str, python: Path, written: Path) -> None:
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", tests)
    output = run(python, *words, cwd=written / "vlgym-stone-pile")
    assert " passed" in output
    assert "warning" not in output  # no property is warned of
    assert tests != "tests" or f"{17 + len(ALL_CHECKS)} passed" in output


def test_the_page_for_coding_agents_works_when_followed_literally(python: Path, tmp_path: Path) -> None:
    """A block without a language is run; a Python block is the file that the line above names."""
    text = (Path(__file__).parents[2] / "AGENTS.md").read_text(encoding="utf-8")
    script = ["set -e"]
    for path, language, block in re.findall(r"(?:`([\w./]+)`:)?\n\n```(\w*)\n(.*?)\n```", text, re.DOTALL):
        script += [f"cat >{path} <<'END'\n{block}\nEND" if language else block]
    assert len(script) == 6
    env = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "PIP_NO_INDEX": "1"}
    env |= {"VLGYM_PLUGINS": "vlgym-tea-room", "PIP_NO_BUILD_ISOLATION": "0"}  # 0: no isolation
    call = ["bash", "-c", "\n".join(script)]
    done = subprocess.run(call, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed", done.stdout)
    report = json.loads((tmp_path / "vlgym-tea-room/runs/blind/report.json").read_text())
    assert report["overall"]["episodes"] == 20


USE = """
import gymnasium, json
from vlgym.cli.app import main

assert main(["show", "example/Arrow-v0"]) == 0
assert main(["check", "example/Arrow-v0", "tutorial/Missing-v0"]) == 0
assert main(["tournament", "random", "oracle", "--env", "stone-pile/StonePile-v0", "--games", "4", "--out", "cup"]) == 0
policy = ["--policy", "compare", "--seed", "1"]
assert main(["eval", *policy, "--env", "tutorial/Missing-v0", "--episodes", "20", "--out", "run"]) == 0
arrow = gymnasium.make("vlgym:example/Arrow-v0")
arrow.reset(seed=3)
steps = [arrow.step(arrow.unwrapped.solve()) for _ in range(4)]
print(json.dumps([[step[1] for step in steps], steps[-1][2], arrow.unwrapped.parser.name]))
"""


def test_installed_plugins_are_certified_rated_and_played(python: Path, tmp_path: Path) -> None:
    output = run(python, "-c", USE, cwd=tmp_path)
    assert "vlgym-example (external)" in output
    assert "2 of 2 environments passed." in output
    assert "| oracle |" in (tmp_path / "cup" / "table.md").read_text()
    assert [episode[-1].success for episode in read_trajectories(tmp_path / "run")] == [True] * 20
    rewards, ended, parser = json.loads(output.splitlines()[-1])
    assert (rewards, ended, parser) == ([1.0, 1.0, 1.0, 1.0], True, "answer")  # its own parser


@pytest.mark.parametrize(("name", "message"), [
    ("Tea Room", "is not a name for a plugin"), ("class", "is taken"),
    ("os", "'os' is a module of Python's standard library"), ("numpy", "is installed here"),
    ("con", "the name of a device on Windows"), ("lpt1", "the name of a device on Windows"),
    ("cards", "vlgym-cards is a distribution that exists already"),
])  # fmt: skip
def test_what_cannot_be_written_is_one_line(name: str, message: str, tmp_path: Path) -> None:
    captured = invoke("new-plugin", name, "--out", tmp_path, status=2)
    assert message in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert os.listdir(tmp_path) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "vlgym-tea-room" / "mine.txt"
    file.parent.mkdir()
    file.write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        new_plugin("tea-room", out=tmp_path)
    assert [path.name for path in file.parent.iterdir()] == ["mine.txt"]


def test_a_full_disk_leaves_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        if path.name == "plugin.py":
            raise OSError(28, "No space left on device")
        write_whole(path, text)

    monkeypatch.setattr("vlgym.cli.new_plugin.write_whole", full)
    with pytest.raises(UserError, match="No space left"):
        new_plugin("tea-room", out=tmp_path)
    assert os.listdir(tmp_path) == []

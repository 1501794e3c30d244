"""The README works as written: its Python wins, its commands exist, all of it runs."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from fault_server import FaultServer
from sources import ROOT
from typer.main import get_command

from baselines.learning.command import parse
from vlgym.cli.app import build_app

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)\n```", README, re.DOTALL)
WON = "success: True"


def read_commands(text: str) -> list[list[str]]:
    """The words of each line of the code blocks that name no language."""
    blocks = re.findall(r"^```(\w*)\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
    plain = "\n".join(block.replace("\\\n", " ") for language, block in blocks if not language)
    lines = [re.sub(r"(^|\s)#.*", "", line.strip()) for line in plain.split("\n")]
    parts = [part for line in lines for part in re.split(r"\s&&\s", line)]
    programs = re.compile(r"(make|vlgym|pip install|python -m baselines\.)\b")
    return [shlex.split(part) for part in parts if programs.match(part)]


def find_fault(words: list[str]) -> str:
    """The fault of a command of the documentation; empty where its names exist."""
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        wanted = {word for word in words[1:] if "=" not in word}
        return "" if wanted <= {*targets} else "no such target"
    if words[0] == "vlgym":
        return _find_vlgym_fault(words[1:])
    if words[:2] == ["python", "-m"] and words[2].startswith("baselines."):
        module = importlib.import_module(words[2])
        try:
            parse(module.Config, "", [word for word in words[3:] if not word.startswith("--help")])
        except SystemExit:
            return "no such option"
        return ""
    if words[:2] == ["pip", "install"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = project["optional-dependencies"]
        for flag, word in pairwise(words):
            name, _, wanted = word.partition("[")
            if flag == "-e" and not (ROOT / name).exists() and not name.startswith("vlgym-"):
                return f"no such folder: {word}"
            if wanted and not {*wanted.rstrip("]").split(",")} <= extras.keys():
                return f"no such extra: {word}"
    return ""


def _find_vlgym_fault(words: list[str]) -> str:
    command = get_command(build_app())
    while words and hasattr(command, "commands"):
        name, *words = words
        if name == "--help":
            return ""
        if name not in command.commands:
            return f"no such command: {name}"
        command = command.commands[name]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    for word in words:
        if word.startswith("-") and word.partition("=")[0] not in known:
            return f"no such option: {word}"
    return ""


@pytest.mark.parametrize("code", PYTHON)
def test_the_python_of_the_readme_wins(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert WON in done.stdout
    assert len(PYTHON) == 2


PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_has_names_that_exist(page: str) -> None:
    commands = read_commands((ROOT / page).read_text(encoding="utf-8"))
    faults = [f"{shlex.join(words)}: {fault}" for words in commands if (fault := find_fault(words))]
    assert faults == []
    assert page != "README.md" or len(commands) == 9


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("vlgym evaluate", "command"), ("vlgym eval --polcy x", "option"),
        ("make demos", "target"), ("pip install -e plugins/card", "folder"), ("pip install -e '.[evl]'", "extra"),
        ("python -m baselines.vldac --env vlgym/NumberLine-v1 --updats 3", "option"),
    ],
)  # fmt: skip
def test_a_wrong_name_is_found(line: str, fault: str) -> None:
    assert fault in find_fault(shlex.split(line))


@pytest.mark.exhaustive
def test_the_readme_runs_in_a_fresh_environment(tmp_path: Path) -> None:
    with FaultServer() as server:
        stands_for = {
            "https://github.com/vlgym/vlgym": f"{ROOT} vlgym",
            "http://127.0.0.1:8000/v1": server.url,
            "hf:OWNER/NAME": "hf:runs/NumberLine-001/model",  # the demo's
            "vldac --env vlgym/NumberLine-v1\n": "vldac --env vlgym/NumberLine-v1 --updates 1\n",
            "--model OWNER/NAME --preset 24gb": "--model runs/NumberLine-001/model --updates 1",
            "vlgym play vlgym/Sokoban-v0": "vlgym play vlgym/Sokoban-v0 </dev/null",
            "vlgym ui ": "timeout -s INT 20 vlgym ui --port 0 || test $? -le 130 ",
        }
        blocks = re.findall(r"^```(python)?\n(.*?)\n```", README, re.DOTALL | re.MULTILINE)
        script = ["set -ex"]
        for language, block in blocks:
            for written, used in stands_for.items():
                block = block.replace(written, used)
            script += [f"python - <<'END' | grep '{WON}'\n{block}\nEND" if language else block]
        env = {**os.environ, "PYTHON": "python3", "OPENAI_API_KEY": ""}
        env = {name: value for name, value in env.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        call, options = ["bash", "-c", "\n".join(script)], {"capture_output": True, "text": True}
        done = subprocess.run(call, cwd=tmp_path, env=env, timeout=3600, **options)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    runs = tmp_path / "vlgym" / "runs"
    reports = [json.loads((runs / name / "report.json").read_text()) for name in ("first", "second")]
    assert [report["overall"]["parts"] for report in reports] == [2, 1]

"""Every option of every command with wrong values: one line, status 2, no work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import invoke
from typer.main import get_command

from vlgym.cli.app import build_app

ENV = "vlgym/NumberLine-v0"
NOWHERE = "/dev/null/x"  # cannot be made, by root either
CALLS = {
    "list": ["list"], "show": ["show", ENV, "--prompt"], "check": ["check", ENV],
    "play": ["play", ENV, "--policy=random"],
    "canary": ["canary", "random"],
    "doctor": ["doctor"], "new-plugin": ["new-plugin", "tea-room"], "registry": ["registry"],
    "eval": ["eval", "--policy=random", f"--env={ENV}", "--out=run"], "report": ["report", NOWHERE],
    "compare": ["compare", NOWHERE, NOWHERE], "verify": ["verify", NOWHERE],
    "ui": ["ui", "--port=0"], "serve": ["serve", "--workers=1", "--port=0"],
    "export": ["export", NOWHERE, "--to=hf", "--out=data"],
    "tournament": ["tournament", "random", "oracle", "--env=vlgym/TicTacToe-v0", "--out=run"],
}  # fmt: skip
"""A call of each command that works, or would work for long."""
WRONG = {
    "integer": ["-1", "x", "1.5", str(10**30)], "number": ["-1", "x", "nan"], "path": [NOWHERE, "/proc/none/x"],
    "text": ["no-such-thing"], "any text": [],
}  # fmt: skip
KINDS = {
    "--seed": "integer", "--repeats": "integer", "--path": "path", "--out": "path",
    "--system": "any text", "--style": "text", "--pictures": "text",
    "--modality": "text", "--few-shot": "integer", "--config": "path",
    "--html": "path",
    "--arg": "text", "--env": "text", "--id": "text", "--only": "text",
    "--parser": "text", "--picture": "text",
    "--envs": "text", "--host": "text", "--port": "integer", "--to": "text",
    "--planner": "text", "--policy": "text", "--split": "text", "--suite": "text", "--env-kwargs": "text",
    "--policy-arg": "text", "--base-url": "text", "--episodes": "integer",
    "--opponents": "text", "--games": "integer", "--listen": "integer", "--workers": "integer",
    "--sessions": "integer", "--idle": "number",
    "--history-turns": "integer", "--history-images": "integer", "--num-envs": "integer",
    "--max-tokens": "integer", "--temperature": "number", "--env-timeout": "number",
    "--price-in": "number", "--price-out": "number", "--max-cost": "number",
}  # fmt: skip
"""Type of each option's value; a new option needs a line here."""
FREE = {("play", "--seed", str(10**30)), ("show", "--seed", str(10**30)), ("show", "--picture", "no-such-thing")}
"""Any number from 0 on is a seed, and any name is one of a file."""


def cases() -> Iterator[tuple[str, str, str]]:
    """Command, option, wrong value."""
    commands = get_command(build_app()).commands  # type: ignore[attr-defined]
    for name in CALLS:
        command = commands[name]
        for parameter in command.params:
            option = parameter.opts[0]
            if not option.startswith("-") or parameter.is_flag:
                continue
            for value in WRONG[KINDS[option]]:
                if (name, option, value) not in FREE:
                    yield name, option, value


def test_the_sweep_knows_every_command() -> None:
    commands = get_command(build_app()).commands  # type: ignore[attr-defined]
    assert set(commands) == set(CALLS)
    assert {(name, option) for name, option, _ in cases()} >= {("show", "--arg"), ("play", "--seed")}


GAME = "--env=vlgym/TicTacToe-v0"


@pytest.mark.parametrize(("name", "option", "value"), [*cases()])
def test_a_wrong_value_is_one_line_and_nothing_is_begun(
    name: str, option: str, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vlgym.testing.measure_hashes", lambda *args: pytest.fail("work was begun"))
    twice = (f"{option}=", *["--env="] * (option == "--opponents"))
    call = [word for word in CALLS[name] if not word.startswith(twice)] + [GAME] * (option == "--opponents")
    told = invoke(*call, option, value, status=2)
    assert told.out == ""
    assert any(word in told.err for word in (option, option[2:].replace("-", "_"), value))  # it says what was wrong
    assert "Traceback" not in told.err
    assert "given twice" not in told.err
    assert os.listdir(tmp_path) == []

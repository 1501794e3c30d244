"""Every option of every command with wrong values: one line, status 2, no work."""

import os
from collections.abc import Iterator

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
    "any text": "system",
    "path": "config html out path",
    "number": "env-timeout idle max-cost price-in price-out temperature",
    "integer": "episodes few-shot games history-images history-turns listen max-tokens num-envs port "
    "repeats seed sessions workers",
    "text": "arg base-url env env-kwargs envs host id modality only opponents parser picture pictures "
    "planner policy policy-arg split style suite to",
}
"""Options by the type of their values; a new option needs a word here."""
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
            kind = next(kind for kind, names in KINDS.items() if option[2:] in names.split())
            for value in WRONG[kind]:
                if (name, option, value) not in FREE:
                    yield name, option, value


def test_the_sweep_knows_every_command() -> None:
    commands = get_command(build_app()).commands  # type: ignore[attr-defined]
    assert set(commands) == set(CALLS)
    assert {(name, option) for name, option, _ in cases()} >= {("show", "--arg"), ("play", "--seed")}


GAME = "--env=vlgym/TicTacToe-v0"


@pytest.mark.parametrize(("name", "option", "value"), [*cases()])
def test_a_wrong_value_is_one_line_and_nothing_is_begun(name, option, value, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vlgym.testing.measure_hashes", lambda *args: pytest.fail("work was begun"))
    game = [GAME] * (option == "--opponents")
    twice = (f"{option}=", "--env=") if game else (f"{option}=",)
    call = [word for word in CALLS[name] if not word.startswith(twice)] + game
    output = invoke(*call, option, value, status=2)
    assert output.out == ""
    words = (option, option[2:].replace("-", "_"), value)  # one of them says what was wrong
    assert any(word in output.err for word in words)
    assert "Traceback" not in output.err
    assert "given twice" not in output.err
    assert os.listdir(tmp_path) == []

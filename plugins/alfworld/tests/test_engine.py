"""The fast functions change no byte of what the engine says, and leave nothing behind."""

import importlib.util
import sys
from typing import Any

import numpy as np
import pytest
from vlgym_alfworld import package
from vlgym_alfworld.drawn import TextGame
from vlgym_alfworld.game import PICK, TASKS
from vlgym_alfworld.generator import draw_game

from vlgym.errors import MissingSystemPartError

SWEPT = pytest.mark.exhaustive


def functions_now() -> list[Any]:
    return [vars(owner)[name] for owner, name, _ in package.replacements()]


def transcript(running: TextGame, seed: int, task: str) -> list[Any]:
    rng = np.random.default_rng(seed)
    running.open(draw_game(rng, task))
    lines: list[Any] = []
    for _ in range(8):
        lines += [running.feedback, running.commands, running.won]
        lines.append(sorted(str(fact) for fact in running.facts))
        running.command(running.commands[int(rng.integers(len(running.commands)))])
    running.close()
    return [*lines, running.feedback, running.commands, running.won]


@pytest.mark.parametrize(
    ("seed", "task"),
    [(0, TASKS[0]), *(pytest.param(*case, marks=SWEPT) for case in enumerate(TASKS, 1))],
)
def test_transcripts_equal_those_of_the_untouched_engine(seed: int, task: str):
    assert transcript(TextGame(), seed, task) == transcript(TextGame(fast=False), seed, task)


def test_everything_is_restored_after_play_and_after_an_error(capsys: pytest.CaptureFixture[str]):
    before, argv, stdout = functions_now(), list(sys.argv), sys.stdout
    running = TextGame()
    running.open(draw_game(np.random.default_rng(1), PICK))
    running.command("look")
    with package.fast_engine():
        assert functions_now() != before
    with pytest.raises(ZeroDivisionError), package.fast_engine():
        print(1 / 0)
    running.close()
    assert functions_now() == before
    assert (sys.argv, sys.stdout) == (argv, stdout)
    assert capsys.readouterr().out == ""


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingSystemPartError, match=r"not installed.*cmake.*pip install -e .*plugins/alfworld"):
        package.package_folder.__wrapped__()
    monkeypatch.undo()
    with pytest.raises(MissingSystemPartError, match=r"no_such_module cannot be imported"):
        package.import_quietly("alfworld.no_such_module")

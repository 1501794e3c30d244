"""The fast functions change no byte of what the engine says, and leave nothing behind."""

import importlib.util
import sys
from typing import Any

import numpy as np
import pytest
from vlgym_alfworld import engine, package
from vlgym_alfworld.drawn import TextGame
from vlgym_alfworld.game import PICK, TASKS
from vlgym_alfworld.generator import draw_game

from vlgym.errors import MissingSystemPartError


def functions_now() -> list[Any]:
    return [vars(owner)[name] for owner, name, _ in engine.replacements()]


def transcript(running: TextGame, seed: int, task: str, steps: int = 8, scene: int | None = None) -> list[Any]:
    rng = np.random.default_rng(seed)
    running.open(draw_game(rng, task, scene=scene))
    lines: list[Any] = [running.feedback, running.commands, running.won]
    for _ in range(steps):
        command = running.commands[int(rng.integers(len(running.commands)))]
        running.command(command)
        lines += [command, running.feedback, running.commands, running.won]
        lines.append(sorted(str(fact) for fact in running.facts))
    return lines


@pytest.mark.parametrize(
    ("seed", "task"),
    [pytest.param(*case, marks=pytest.mark.exhaustive) if case[0] > 1 else case for case in enumerate(TASKS)],
)
def test_transcripts_equal_those_of_the_untouched_engine(seed: int, task: str):
    fast, stock = TextGame(), TextGame(fast=False)
    assert transcript(fast, seed, task) == transcript(stock, seed, task)
    fast.close()
    stock.close()


def test_everything_is_restored_after_play_and_after_an_error(capsys: pytest.CaptureFixture[str]):
    before, argv, stdout = functions_now(), list(sys.argv), sys.stdout
    running = TextGame()
    running.open(draw_game(np.random.default_rng(1), PICK))
    running.command("look")
    with engine.fast_engine():
        assert functions_now() != before
    with pytest.raises(ZeroDivisionError), engine.fast_engine():
        print(1 / 0)
    running.close()
    assert functions_now() == before
    assert sys.argv == argv
    assert sys.stdout is stdout
    assert capsys.readouterr().out == ""


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingSystemPartError, match=r"is not installed.*cmake.*pip install -e .*plugins/alfworld"):
        package.package_folder.__wrapped__()
    monkeypatch.undo()
    with pytest.raises(MissingSystemPartError, match=r"no_such_module cannot be imported"):
        package.import_quietly("alfworld.no_such_module")

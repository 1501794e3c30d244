"""The bar of a run: how far it is, by updates or by environment steps, and how long it still takes."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from baselines.runs import logs
from baselines.runs.pace import RECENT, Pace

BEGUN = {"update": 0, "env_steps": 0}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def play(pace: Pace, clock: Clock, seconds: list[float], steps: int = 8, done: dict[str, int] = BEGUN) -> float:
    """Updates that take so long, of so many steps each; return the seconds left."""
    for taken in seconds:
        row = {"update": done["update"] + 1, "env_steps": done["env_steps"] + steps}
        clock.now += taken
        pace.note(row | {"seconds/rollout": taken / 2, "seconds/update": taken / 2, "seconds/env": taken / 4}, done)
        done = row
    ends = pace.ends()
    assert ends is not None
    return ends - clock.now


def test_the_first_update_says_how_long_the_run_takes_whatever_came_before_it() -> None:
    clock = Clock()
    pace = Pace(10, clock=clock)
    assert pace.ends() is None
    clock.now += 500  # held-out episodes before the first update
    assert play(pace, clock, [60.0]) == pytest.approx(9 * 60)


def test_only_recent_updates_count_and_what_lies_between_them_does() -> None:
    clock = Clock()
    pace = Pace(100, clock=clock)
    assert play(pace, clock, [100.0] * 5 + [10.0] * RECENT) == pytest.approx((100 - 15) * 10)
    clock.now += 40  # an evaluation between two updates
    assert play(pace, clock, [10.0], done={"update": 15, "env_steps": 120}) == pytest.approx(
        84 * (10 * RECENT + 40) / RECENT
    )


def test_with_a_budget_of_environment_steps_the_limit_that_comes_first_counts() -> None:
    clock = Clock()
    pace = Pace(1000, env_steps=160, clock=clock)
    assert play(pace, clock, [5.0] * 4) == pytest.approx(16 * 5)
    assert pace.nearest({"update": 4, "env_steps": 32}) == (32, 160)
    pace = Pace(10, env_steps=160_000, clock=clock)
    assert play(pace, clock, [5.0] * 4) == pytest.approx(6 * 5)
    assert pace.nearest({"update": 4, "env_steps": 32}) == (4, 10)
    assert Pace(9, 10).nearest({"update": 1, "env_steps": 16}) == (10, 10)


def test_a_resumed_run_is_paced_by_its_own_updates() -> None:
    clock = Clock()
    assert play(Pace(10, clock=clock), clock, [7.0], done={"update": 5, "env_steps": 40}) == pytest.approx(4 * 7)


ROW = {"update": 3, "env_steps": 300, "seconds/rollout": 30.0, "seconds/update": 30.0, "episode/success": 0.5}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("budget", "shown", "left"),
    [(None, "3/9", r"0:(06:00|05:5\d) left"), (800, "300/800", r"0:(05:00|04:5\d) left")],
)
def test_a_terminal_shows_the_bar_and_the_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int | None, shown: str, left: str
) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    log = logs.RunLog(tmp_path, name="VL-DAC", total=9, done=2, steps=200, env_steps=budget)
    log.write(ROW)
    log.progress.refresh()
    log.close()
    text = stream.getvalue()
    assert shown in text
    assert re.search(left, text)


def test_a_pipe_gets_neither_bar_nor_time_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = logs.RunLog(tmp_path, name="VL-DAC", total=5, done=4, steps=200)
    log.write({**ROW, "update": 5})
    log.close()
    assert capsys.readouterr().out == "update 5/5  success 0.50\n"

"""`vlgym play --replay` at a terminal: forwards, backwards, to other episodes."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toys import Walk, make_spec

from vlgym.cli.app import main
from vlgym.rendering import decode_png
from vlgym.rollout import Runner, run_episodes
from vlgym.trajectory import TrajectoryWriter, describe_run, read_trajectories
from vlgym.types import Reply, Turn


class Keyboard(io.StringIO):
    """Typed lines that come from a terminal."""

    def isatty(self) -> bool:
        return True


class ToAndFro:
    """Goes left and right in turn."""

    name = "to-and-fro"
    concurrency = None

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply(f"So <action>{('left', 'right')[turn.turn % 2]}</action>") for turn in turns]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Two episodes of the toy, all their turns played; the first reply of the newest tries to steer the terminal."""
    env = Walk(vlgym_spec=make_spec(history_turns=1, history_images=2))
    writer = TrajectoryWriter(tmp_path / "records", describe_run([env]))
    older, newer = run_episodes(Runner([env], episodes=2), ToAndFro())
    assert min(len(older), len(newer)) > 3
    newer[0] = replace(newer[0], reply="\x1b]52;c;aGk=\x07[bold]hi[/bold]", span=None)
    writer.write([replace(record, seed=3) for record in older])
    writer.write([replace(record, seed=4) for record in newer])
    return tmp_path / "records"


def walk(folder: Path, typed: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", Keyboard(typed))
    monkeypatch.setattr("sys.stdout", screen)
    assert main(["play", "--replay", str(folder), *options]) == 0
    return screen.getvalue()


def turns(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"--- turn (\d+) ---", text)]


def test_one_walks_forwards_backwards_and_to_a_turn(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = walk(records, "\n\np\ng 1\np\ng 99\nx\nq\n\n", monkeypatch, "--picture", "none")
    assert turns(shown) == [1, 2, 3, 2, 1]
    assert shown.count("This episode has turns 1 to ") == 2  # before the first, and beyond the last
    assert shown.count("p: turn before") == 2  # at the beginning, and for what is no command


def test_one_goes_to_older_and_newer_episodes(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = walk(records, "n\n\no\no\nn\n", monkeypatch, "--picture", "none")
    assert re.findall(r"seed (\d+)", shown) == ["4", "3", "4"]
    assert turns(shown) == [1, 2, 1, 1]
    assert "There is no newer episode." in shown
    assert "There is no older episode." in shown


def test_each_turn_is_drawn_and_what_was_read_is_named(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = walk(records, "\n", monkeypatch, "--picture", "kitty")
    drawn = [decode_png(base64.b64decode(text)) for text in re.findall(r"\x1b_Ga=T[^;]*;([^\x1b]*)\x1b", shown)]
    newest = list(read_trajectories(records))[-1]
    assert len(drawn) == 2
    assert all(np.array_equal(image, record.image) for image, record in zip(drawn, newest, strict=False))
    assert not np.array_equal(drawn[0], drawn[1])
    first, second = shown.split("--- turn 2 ---")
    assert "[nothing was read as an action]" in first
    found = re.search(r"\[read as the action: '(\w+)', characters (\d+) to (\d+)\]", second)
    assert found is not None
    assert re.search(rf"executed: {found[1]};", second)


def test_a_reply_does_not_steer_the_terminal(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = walk(records, "q\n", monkeypatch, "--picture", "none")
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert r"\x1b]52;c;aGk=\x07[bold]hi[/bold]" in shown


def test_a_damaged_picture_is_said_and_the_walk_goes_on(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (records / "images").iterdir():
        path.write_bytes(b"no picture")
    shown = walk(records, "\n", monkeypatch, "--picture", "blocks")
    assert turns(shown) == [1, 2]
    assert shown.count("[the image cannot be read: UnidentifiedImageError]") == 2

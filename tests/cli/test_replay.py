"""`vlgym play --replay`: episodes as they were recorded."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as PILImage
from PIL import UnidentifiedImageError
from toys import Walk, make_spec

from vlgym.cli.app import main
from vlgym.cli.play_cmd import name_span
from vlgym.env.rendering import decode_png
from vlgym.play.rollout import Runner, run_episodes
from vlgym.play.trajectory import TrajectoryWriter, describe_run, read_trajectories
from vlgym.types import Reply, Turn


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


def show(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    """Return what a terminal shows."""
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdout", screen)
    assert main(["play", "--replay", str(folder), *options]) == 0
    return screen.getvalue()


def turns(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"--- turn (\d+) of \d+ ---", text)]


def test_a_terminal_shows_the_newest_episode_or_the_one_asked_for(
    records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options, seed in (((), "4"), (("--index", "1"), "3")):
        shown = show(records, monkeypatch, "--picture", "none", *options)
        assert re.findall(r"seed (\d+)", shown) == [seed]
        assert len(turns(shown)) > 3
    assert main(["play", "--replay", str(records), "--index", "2"]) == 2


def test_each_turn_is_drawn_and_what_was_read_is_named(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("vlgym.cli.play_cmd.show_picture", lambda image, protocol, _: drawn.append(image))
    shown = show(records, monkeypatch, "--picture", "kitty")
    newest = list(read_trajectories(records))[-1]
    assert len(drawn) == len(newest)
    assert all(np.array_equal(image, record.image) for image, record in zip(drawn, newest, strict=True))
    assert not np.array_equal(drawn[0], drawn[1])
    first, second = re.split(r"--- turn [23] of \d+ ---", shown)[:2]
    assert "[nothing was read as an action]" in first
    found = re.search(r"\[read as the action: '(\w+)', characters (\d+) to (\d+)\]", second)
    assert found is not None
    assert re.search(rf"executed: {found[1]};", second)


def test_what_was_read_is_named_by_its_characters() -> None:
    assert name_span("\x1b[2Ja\x07b", (4, 6)) == "[read as the action: 'a\\x07', characters 4 to 6]"
    for span in ((-5, 2), (3, 2), (0, 99)):
        assert name_span("abc", span) == (
            f"[the record names characters {span[0]} to {span[1]}, which the reply lacks]"
        )


def test_into_a_pipe_all_episodes_are_printed_in_the_order_of_time_and_index_prints_one(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", "--replay", str(records)]) == 0
    shown = capsys.readouterr().out
    recorded = list(read_trajectories(records))
    assert re.findall(r"seed (\d+)", shown) == ["3", "4"]
    assert turns(shown) == [turn + 1 for episode in recorded for turn in range(len(episode))]
    assert re.findall(r"Episode (\w+) after (\d+)", shown) == [("truncated", str(len(each))) for each in recorded]
    assert "\x1b" not in shown
    assert main(["play", "--replay", str(records), "--index", "1"]) == 0
    assert re.findall(r"seed (\d+)", capsys.readouterr().out) == ["3"]


DEEP = "[" * 100_000
HOSTILE = "\x1b]52;c;aGk=\x07\x1b[2J\u202e\r[bold red]x[/bold red]\x9b31m"


def rewrite(folder: Path, **values: Any) -> None:
    """Give the first record of a folder other values; without checksums, as a stranger writes it."""
    (folder / "run.json").write_text('{"format": 3}')
    lines = [json.loads(line) for line in (folder / "metadata.jsonl").read_text().splitlines()]
    lines[0].update(values)
    text = "".join(json.dumps({name: row[name] for name in row if name != "crc32"}) + "\n" for row in lines)
    (folder / "metadata.jsonl").write_text(text)


@pytest.mark.parametrize(
    "values",
    [
        {"env_id": HOSTILE}, {"part": HOSTILE}, {"reply": HOSTILE}, {"parse": HOSTILE}, {"actions": [HOSTILE]},
        {"reply": HOSTILE, "span": [0, 9]},
        {"prompt": json.dumps([{"role": HOSTILE, "content": [{"type": "text", "text": HOSTILE}]}])},
    ],
    ids=lambda values: " ".join(values),
)  # fmt: skip
def test_no_field_of_a_record_steers_the_terminal(
    values: dict[str, Any], records: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite(records, **values)
    assert main(["play", "--replay", str(records)]) == 0
    monkeypatch.setenv("TERM", "dumb")
    shown = capsys.readouterr().out + show(records, monkeypatch, "--picture", "none", "--index", "1")
    assert "[bold red]x[/bold red]" in shown
    assert [letter for letter in shown if not (letter.isprintable() or letter == "\n")] == []


@pytest.mark.parametrize(
    "values",
    [
        {"seed": HOSTILE}, {"episode": HOSTILE}, {"env_id": {HOSTILE: 1}},
        {"reward": "x"}, {"reward": 10**400}, {"reward": float("nan")}, {"reply": 3}, {"reply": None},
        {"actions": [1]}, {"parse": [1]}, {"score": "x"}, {"success": 1}, {"span": ["x", 1]}, {"prompt": DEEP},
        {"prompt": json.dumps([{"role": "user", "content": [{"type": "text", "text": 5}]}])},
        {"prompt": json.dumps([{"role": "user", "content": [{"type": "text"}]}])},
        {"prompt": json.dumps([{"role": "user", "content": ["x"]}])},
        {"prompt": json.dumps([{"role": "user", "content": [{"type": "image", "file_name": "../../secret.png"}]}])},
    ],
    ids=lambda values: str(values)[:60],
)  # fmt: skip
def test_a_record_of_wrong_types_is_an_error_of_one_line(
    values: dict[str, Any], records: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite(records, **values)
    assert main(["play", "--replay", str(records)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("vlgym: ")
    assert len(said.splitlines()) == 1
    assert said.rstrip("\n").isprintable()


def test_a_file_that_is_only_called_png_is_not_opened_as_what_it_is(records: Path) -> None:
    data = io.BytesIO()
    PILImage.new("RGB", (4, 4)).save(data, "EPS")  # PIL would start another program to draw it
    with pytest.raises(UnidentifiedImageError):
        decode_png(data.getvalue())


def test_a_reply_does_not_steer_the_terminal(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    shown = show(records, monkeypatch, "--picture", "none")
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert r"\x1b]52;c;aGk=\x07[bold]hi[/bold]" in shown


def test_a_damaged_picture_is_said_and_the_walk_goes_on(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (records / "images").iterdir():
        path.write_bytes(b"no picture")
    shown = show(records, monkeypatch, "--picture", "blocks")
    assert shown.count("UnidentifiedImageError") == len(turns(shown)) > 1

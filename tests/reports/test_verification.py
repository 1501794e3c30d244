"""`vlgym verify`: played runs pass, every sealed edit is named, and tables show the result."""

import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toys
from commands import invoke
from evaluations import change_header, read_rows, write_rows
from toy_games import NIM
from toys import installed, make_spec

from vlgym.env.rendering import encode_png
from vlgym.errors import FailedError, TrajectoryError, UserError
from vlgym.evaluation import run_evaluation
from vlgym.evaluation.plan import Part
from vlgym.games.tournament import Tournament
from vlgym.play.policies import RandomPolicy
from vlgym.play.trajectory import hash_picture, read_header
from vlgym.reports import verification
from vlgym.reports.compare import compare_runs
from vlgym.reports.records import read_run
from vlgym.reports.verification import is_verified, verify_run

WALK = make_spec(pictures="exact")
COIN = make_spec("vlgym/Coin-v0", "toys:Coin", max_turns=6, reward_range=(-1.0, 2.0))
ITEMS = ({"max_turns": 3}, {"max_turns": 5})
PARTS = [
    Part(WALK.id, episodes=3, repeats=2),
    Part(WALK.id, episodes=2, pictures="grey"),
    Part(COIN.id, episodes=2, arguments={"invalid_penalty": 0.25}, items=ITEMS),
]


@pytest.fixture(autouse=True)
def _toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("VLGYM_CACHE", str(tmp_path / "cache"))
    with installed(WALK, COIN, NIM):
        yield


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs") / "run"
    with installed(WALK, COIN, NIM):
        run_evaluation(PARTS, RandomPolicy(), place)
    return place


@pytest.fixture
def folder(played: Path, tmp_path: Path) -> Path:
    """A run that a test may change."""
    return Path(shutil.copytree(played, tmp_path / "run"))


def edit(**changes: Any) -> Callable[[Path], None]:
    """Return a function that changes the second turn of an episode, and seals it again."""

    def change(folder: Path) -> None:
        rows = read_rows(folder)
        at = next(n for n, row in enumerate(rows) if row["part"] == WALK.id and row["turn"] == 1)
        for name, value in changes.items():
            rows[at][name] = value(rows[at][name]) if callable(value) else value
        write_rows(folder, rows)

    return change


def end_early(folder: Path) -> None:
    """Make an episode end with success at its first turn."""
    rows = read_rows(folder)
    rows[0] |= {"terminated": True, "success": True, "reward": 1.0}
    name = (rows[0]["part"], rows[0]["episode"])
    write_rows(folder, [rows[0], *(row for row in rows if (row["part"], row["episode"]) != name)])


def paint(folder: Path) -> None:
    """Show another picture, under its right name."""
    picture = np.zeros((22, 22, 3), np.uint8)
    name = f"images/{hash_picture(picture)}.png"
    (folder / name).write_bytes(encode_png(picture))
    edit(file_name=name)(folder)


def bomb(folder: Path) -> None:
    """Declare a picture of 10,000,000,000 pixels."""
    path = sorted((folder / "images").iterdir())[0]
    head = b"IHDR" + struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    data = path.read_bytes()
    path.write_bytes(data[:12] + head + struct.pack(">I", zlib.crc32(head)) + data[33:])


def change_part(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        parts = read_header(folder)["parts"]
        parts[WALK.id] |= changes
        change_header(folder, parts=parts)

    return change


def test_a_run_that_was_played_here_passes(folder: Path) -> None:
    turns = len(read_rows(folder))
    assert invoke("verify", folder).out == (
        f"verified: 12 episodes, {turns} turns are as the installed environments play them; pictures of "
        "1 environment(s), which machines draw differently, are not compared\n"
    )
    edit(reward=1.0)(folder)
    invoke("verify", folder, status=1)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (edit(reward=1.0), r"turn 1: reward is 1.0 as recorded, 0.0 as replayed"),
        (edit(success=True), r"turn 1: success is True as recorded, False"),
        (edit(text=lambda text: text.replace("cell", "sell", 1)), r"text is '.*sell.* as recorded, '.*cell"),
        (edit(reply="<action>dance</action>"), "turn 1: parse is 'ok' as recorded, 'illegal_action'"),
        (edit(score=1.0), r"turn 1: score is 1.0 as recorded, None"),
        (edit(level=1), r"turn 1: level is 1"),
        (edit(parse="bad"), r"turn 1: parse is 'bad'"),
        (edit(invalid=True), r"turn 1: invalid is True"),
        (edit(span=[0, 1]), r"turn 1: span is \(0, 1\)"),
        (edit(actions=["left", "left"]), r"turn 1: actions is"),
        (paint, "turn 1: picture is '[0-9a-f]{20}' as recorded, '[0-9a-f]{20}'"),
        (end_early, r"turn 0: (reward|terminated) is"),
        (change_part(changed=True), "run.json differs from the installed environment in changed"),
        (change_part(given={"invalid_penalty": 1.0}), r"in arguments.invalid_penalty, changed"),
        (change_part(spec_hash="0"), r"in spec_hash"),
        (change_part(parser_settings={"a": 1}), r"in parser_settings"),
    ],
)
def test_a_sealed_edit_is_named(folder: Path, change: Callable[[Path], None], named: str) -> None:
    change(folder)
    with pytest.raises(FailedError, match=named) as error:
        verify_run(folder)
    assert "\n" not in str(error.value)
    assert not is_verified(read_run(folder))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (change_part(given={"parser": "os:system"}), "parser='os:system'; only .* import string is code"),
        (change_part(items=[{"parser": "os:system"}]), "says parser='os:system'"),
        (change_part(given={"level_file": "/dev/zero"}), 'says "/dev/zero": no object, path or address'),
        (change_part(given={"opponents": {"class": "a:B"}}), 'says "class": "a:B": no object'),
        (change_part(items=[{"a": [{"site": "http://a.example"}]}]), 'says "http://a.example": no'),
        (bomb, r"metadata.jsonl, line \d+: DecompressionBombError"),
        (change_part(given={"nonsense": 1}), "has no argument 'nonsense'"),
        (lambda folder: write_rows(folder, []), "holds no finished episode"),
        (lambda folder: (folder / "metadata.jsonl").unlink(), "holds no metadata.jsonl"),
    ],
)
def test_no_replay_is_one_line(folder: Path, change: Callable[[Path], None], named: str) -> None:
    change(folder)
    with pytest.raises(UserError, match=named):
        verify_run(folder)


def test_a_missing_environment_and_a_tournament_are_one_line(folder: Path, tmp_path: Path) -> None:
    entry = {**read_header(folder)["parts"][WALK.id], "env_id": "other/Nope-v0"}
    change_header(folder, parts={"other/Nope-v0": entry})
    with pytest.raises(UserError, match=r"No environment 'other/Nope-v0' is known"):
        verify_run(folder)
    Tournament(NIM.id, {"a": RandomPolicy(), "b": RandomPolicy()}, 1, tmp_path / "games").play()
    for place in (tmp_path / "games", tmp_path / "games" / "games"):
        with pytest.raises(TrajectoryError, match="name the folder that `vlgym eval --out` wrote"):
            verify_run(place)


def test_a_failing_environment_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toys.Walk, "act", lambda self, action: 1 / 0)
    with pytest.raises(FailedError, match=r"turn 0: the environment failed: ZeroDivisionError"):
        verify_run(folder)


def test_differences_of_the_last_bits_pass(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act = toys.Walk.act

    def pay(walk: toys.Walk, action: str) -> toys.Outcome:
        outcome = act(walk, action)
        return replace(outcome, reward=outcome.reward + 1e-12)

    monkeypatch.setattr(toys.Walk, "act", pay)
    verify_run(folder)


def test_the_word_stands_in_tables_until_records_or_code_change(folder, tmp_path, monkeypatch):
    policy = RandomPolicy()
    policy.name = "another"
    other, page = tmp_path / "other", tmp_path / "page.html"
    run_evaluation([Part(WALK.id, episodes=3, repeats=2)], policy, other)

    def is_shown() -> bool:
        """Whether the command, the page and the comparison call the first run alone verified."""
        output = invoke("compare", folder, other, "--html", page).out + invoke("compare", folder, other).out
        (pair,) = compare_runs([folder, other])["pairs"]
        places = {
            "verified: first\n" in output, page.read_text().count("over all, verified") == 1,
            pair["verified"] == {"first": True, "second": False},
        }  # fmt: skip
        (verdict,) = places
        return verdict

    assert not is_shown()
    verify_run(folder)
    assert is_shown()
    os.utime(folder / "metadata.jsonl")
    change_header(folder, sessions=[])  # which no number depends on
    assert is_verified(read_run(folder))
    with monkeypatch.context() as patch:
        patch.setattr(verification, "hash_code", lambda module: "other")
        assert not is_shown()
    rows = read_rows(folder)
    write_rows(folder, [{**rows[0], "refused": True}, *rows[1:]])
    assert not is_verified(read_run(folder))
    write_rows(folder, rows)
    assert is_verified(read_run(folder))
    change_header(folder, policy={"name": "verified"})
    assert not is_shown()


def test_a_report_without_records_is_not_verified(folder: Path, tmp_path: Path) -> None:
    invoke("report", folder)
    report = json.loads((folder / "report.json").read_text())
    (folder / "report.json").write_text(json.dumps({**report, "verified": True}))
    (folder / "metadata.jsonl").unlink()
    invoke("compare", folder, folder, "--html", tmp_path / "page.html")
    assert "over all, verified" not in (tmp_path / "page.html").read_text()

"""Files are on the disk before they replace older ones; damage of a record is a named error."""

import errno
import io
import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
from toys import make_walk

from vlgym import files as durable
from vlgym.errors import TrajectoryError
from vlgym.evaluation.folder import count_finished
from vlgym.files import check_files, is_cut, old_of, place_folder, put_back, seal, unseal, write_checksums, write_whole
from vlgym.play.policies import RandomPolicy
from vlgym.play.rollout import Runner, run_episodes
from vlgym.play.trajectory import METADATA, TrajectoryWriter, describe_run, read_header, read_trajectories

Calls = list[tuple[str, str]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Flushes and renames, in their order."""
    events: Calls = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(number: int) -> None:
        events.append(("fsync", Path(f"/proc/self/fd/{number}").resolve().name))
        fsync(number)

    def note_replace(a: Path, b: Path) -> None:
        events.append(("replace", Path(b).name))
        replace(a, b)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    return events


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="names of open files are read from /proc")
def test_a_file_is_flushed_before_it_gets_its_name(tmp_path: Path, calls: Calls) -> None:
    for text in ("old", "new"):
        calls.clear()
        write_whole(tmp_path / "a", text)
        (flushed, part), *rest = calls
        assert flushed == "fsync"
        assert re.fullmatch(r"\.a\.[0-9a-f]{8}\.part", part)
        assert rest == [("replace", "a"), ("fsync", tmp_path.name)]
        assert (tmp_path / "a").read_text() == text


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="names of open files are read from /proc")
def test_all_in_a_folder_is_flushed_before_it_gets_its_name(tmp_path: Path, calls: Calls) -> None:
    for _ in range(2):
        part = tmp_path / ".run.part"
        (part / "inner").mkdir(parents=True)
        for name in ("a", "inner/b"):
            (part / name).write_text(name)
        calls.clear()
        place_folder(part, tmp_path / "run")
        at = calls.index(("replace", "run"))
        assert {name for what, name in calls[:at] if what == "fsync"} == {".run.part", "a", "inner", "b"}
        assert calls[at + 1 :] == [("fsync", tmp_path.name)]
        assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_that_was_moved_away_before_a_kill_is_put_back(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    old_of(folder).mkdir()
    (old_of(folder) / "a").write_text("old")
    put_back(folder)
    assert (folder / "a").read_text() == "old"
    put_back(folder)
    assert (folder / "a").read_text() == "old"


@pytest.mark.parametrize(("number", "fine"), [(errno.EINVAL, True), (errno.ENOSPC, False)])
def test_a_file_system_that_cannot_flush_is_no_error_and_a_full_one_is(tmp_path, monkeypatch, number, fine):
    write_whole(tmp_path / "a", "old")

    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(durable.os, "fsync", refuse)
    if fine:
        write_whole(tmp_path / "a", "new")
    else:
        with pytest.raises(OSError, match="No space"):
            write_whole(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == ("new" if fine else "old")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_list_of_checksums_is_written_last(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    write_checksums(tmp_path)
    check_files(tmp_path)
    assert json.loads((tmp_path / "checksums.json").read_text())["files"].keys() == {"a"}
    (tmp_path / "a").write_text("b")
    with pytest.raises(ValueError, match="a holds other bytes than were written"):
        check_files(tmp_path)


@pytest.mark.parametrize("text", ["{}", "[]", json.dumps(seal({"files": 3})), "\x00", "[" * 99_999])
def test_a_list_of_checksums_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "checksums.json").write_text(text)
    with pytest.raises(ValueError, match=r"checksums\.json"):
        check_files(tmp_path)


def test_a_record_comes_back_from_its_seal_and_is_refused_without_one() -> None:
    record = {"b": [1, 2.5, None], "a": {"ü": "\ud800"}}
    copy = json.loads(json.dumps(seal(record)))
    assert unseal(copy) == record
    assert unseal(dict(reversed(copy.items()))) == record
    assert seal(copy) == copy
    assert unseal(record, required=False) == record
    with pytest.raises(ValueError, match=r"its checksum .* is missing"):
        unseal(record)
    with pytest.raises(ValueError, match="damaged"):
        unseal({**copy, "b": [1, 2.5, 0]}, required=False)


def test_only_the_beginning_of_a_line_is_taken_for_a_cut_one() -> None:
    line = json.dumps({"a": "ü", "b": 1}).encode()
    assert all(is_cut(line[:end]) for end in range(len(line) + 1))
    assert not is_cut(line + b"\n")
    assert not is_cut(line + b"\x0b")
    assert is_cut(b"\x00" * 40), "what some file systems leave after a loss of power"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    runner = Runner([make_walk(), make_walk()], episodes=3)
    part = {"env_id": "vlgym/Walk-v0", "items": [{}], "episodes": 3, "repeats": 1}
    run = describe_run([make_walk()], split="train", parts={"": part})
    writer = TrajectoryWriter(tmp_path / "run", run)
    for episode in run_episodes(runner, RandomPolicy()):
        writer.write(episode)
    writer.sync()
    return tmp_path / "run"


def flip(path: Path, place: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


@pytest.mark.parametrize("read", [lambda path: list(read_trajectories(path, unfinished=False)), count_finished])
def test_a_flipped_bit_in_a_line_is_an_error_that_names_it(folder: Path, read: Any) -> None:
    path = folder / METADATA
    whole, draw = path.read_bytes(), random.Random(0)
    places = [draw.randrange(len(whole)) for _ in range(20)] + [n for n, byte in enumerate(whole) if byte == 10]
    for place in places:
        flip(path, place, draw.randrange(8))
        number = whole[: place + 1].count(b"\n") + (whole[place] != 10)
        with pytest.raises(TrajectoryError, match=rf"metadata\.jsonl, line {number}: ") as error:
            read(folder)
        assert "\n" not in str(error.value)
        path.write_bytes(whole)
    flip(path, whole.index(b"crc32"), 0)
    with pytest.raises(TrajectoryError, match=r"line 1: .*its checksum \(crc32\) is missing"):
        read(folder)


def test_a_flipped_bit_in_run_json_is_an_error(folder: Path) -> None:
    path = folder / "run.json"
    whole = path.read_bytes()
    for place in random.Random(0).sample(range(len(whole)), 20):
        flip(path, place, place % 8)
        with pytest.raises(TrajectoryError, match=r"run\.json cannot be read"):
            read_header(folder)
        path.write_bytes(whole)


def test_a_picture_that_is_not_the_one_that_was_written_is_an_error(folder: Path) -> None:
    pictures = sorted((folder / "images").iterdir())
    whole = pictures[0].read_bytes()
    pictures[0].write_bytes(pictures[1].read_bytes())
    line = rf"line \d+: ValueError: the picture {pictures[0].name} is not the one"
    with pytest.raises(TrajectoryError, match=line):
        list(read_trajectories(folder))
    pictures[0].write_bytes(whole[:-30])
    with pytest.raises(TrajectoryError, match=r"line \d+: "):
        list(read_trajectories(folder))


def test_a_folder_of_format_3_is_read_without_checksums(folder: Path) -> None:
    def read() -> list[list[str]]:
        return [[record.reply for record in episode] for episode in read_trajectories(folder)]

    expected, lines = read(), (folder / METADATA).read_text().splitlines()
    plain = [json.dumps(unseal(json.loads(line))) for line in lines]
    (folder / METADATA).write_text("\n".join(plain))
    (folder / "run.json").write_text(json.dumps({**read_header(folder), "format": 3}))
    assert read() == expected


def test_an_episode_without_room_leaves_no_half(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / METADATA
    before, episode = path.read_bytes(), next(read_trajectories(folder))

    class Full(io.FileIO):
        """A file on a disk with room for a few bytes."""

        room = 50

        def write(self, data: Any) -> int:
            if not self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.room -= (done := super().write(data[: self.room]))
            return done

    writer = TrajectoryWriter(folder, read_header(folder))
    monkeypatch.setattr(durable, "open_end", lambda path: Full(path, "a"))
    with pytest.raises(OSError, match="No space left"):
        writer.write(episode)
    monkeypatch.undo()
    assert path.read_bytes() == before

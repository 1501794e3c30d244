"""A damaged checkpoint or record is one line of error, whichever file and byte it is; and nothing
is damaged by it."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
from stage import files_of

from baselines import vldac
from baselines.models.load import load_family
from baselines.runs.folder import (
    checkpoints,
    load_checkpoint,
    read_checkpoint_record,
    read_run_record,
    save_checkpoint,
    write_record,
)
from baselines.runs.logs import forget_later, read_rows
from vlgym.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for update in (1, 2):
        save_checkpoint(tmp_path, {"x": torch.arange(50.0)}, {"update": update, "more": "words"})
    return tmp_path


def flip(path: Path, place: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def test_a_flipped_bit_in_any_file_of_a_checkpoint_is_refused_by_name(folder: Path) -> None:
    newest = checkpoints(folder)[-1]
    names = sorted(files_of([newest]))
    assert names == ["checksums.json", "state.json", "tensors.safetensors"]
    draw = random.Random(0)
    for name in names:
        whole = (newest / name).read_bytes()
        for _ in range(5):
            flip(newest / name, draw.randrange(len(whole)), draw.randrange(8))
            words = r"update-000002 is damaged .*Remove that folder to go on from"
            with pytest.raises(UserError, match=words) as told:
                load_checkpoint(folder)
            assert name in str(told.value) or name == "checksums.json"
            assert "\n" not in str(told.value)
            (newest / name).write_bytes(whole)
    assert load_checkpoint(folder)[1]["update"] == 2


def log_of(tmp_path: Path) -> Path:
    from vlgym.files import seal

    path = tmp_path / "log.jsonl"
    rows = [seal({"update": n, "loss": n / 8}) for n in range(1, 5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_flipped_bit_in_a_log_is_refused_and_loses_no_row(tmp_path: Path) -> None:
    path = log_of(tmp_path)
    whole = path.read_bytes()
    assert [row["update"] for row in read_rows(path)] == [1, 2, 3, 4]
    assert "crc32" not in read_rows(path)[0]
    for place in (0, len(whole) // 2, len(whole) - 1):
        flip(path, place, place % 8)
        before, number = path.read_bytes(), whole[: place + 1].count(b"\n") + (whole[place] != 10)
        words = rf"log\.jsonl, line {number}: .*remove this one to go on"
        with pytest.raises(UserError, match=words):
            forget_later(path, 3)
        assert path.read_bytes() == before
        path.write_bytes(whole)


def test_the_cut_last_line_of_a_log_is_left_out_wherever_it_is_cut(tmp_path: Path) -> None:
    path = log_of(tmp_path)
    whole = path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])
        assert [row["update"] for row in read_rows(path)] == [1, 2, 3]
    forget_later(path, 2)
    assert [row["update"] for row in read_rows(path)] == [1, 2]
    path.write_bytes(b"")
    assert read_rows(path) == []


def test_a_flipped_bit_in_a_record_is_refused(tmp_path: Path) -> None:
    path, data = tmp_path / "run.json", {"config": {}, "environments": {"ü": 1}, "format": 4, "n": 1.25}
    write_record(path, data)
    assert read_checkpoint_record(path) == data
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        flip(path, place, place % 8)
        with pytest.raises(UserError, match=r"run\.json cannot be read"):
            read_run_record(tmp_path)
        path.write_bytes(whole)


def harmed(finished: Path, tmp_path: Path, name: str) -> Path:
    """A copy of the run with one flipped bit in a file."""
    out = shutil.copytree(finished, tmp_path / "copy", ignore=shutil.ignore_patterns("tensorboard"))
    flip(out / name, random.Random(name).randrange((out / name).stat().st_size), 4)
    return out


def test_a_run_is_not_resumed_from_a_damaged_file(finished: Path, tmp_path: Path) -> None:
    out = harmed(finished, tmp_path, "checkpoints/update-000003/tensors.safetensors")
    before = files_of([out])
    with pytest.raises(UserError, match=r"tensors\.safetensors"):
        vldac.train(vldac.Config(out=out, resume=True, updates=5))
    assert files_of([out]) == before


def test_a_damaged_model_is_not_loaded(finished: Path, tmp_path: Path) -> None:
    out = harmed(finished, tmp_path, "model/model.safetensors")
    words = r"is damaged: model\.safetensors holds other bytes.*Save the model again"
    with pytest.raises(UserError, match=words):
        load_family(str(out / "model"))

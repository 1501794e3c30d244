"""A damaged checkpoint or record is one line of error, whichever file and byte it is; and nothing is damaged by it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from stage import SMALL

from baselines import vldac
from baselines.learning.run import Run
from baselines.learning.state import check_state
from baselines.learning.warm_start import WarmReport
from baselines.models.lora import LoraOptions
from baselines.runs.checkpoint import checkpoints, load_checkpoint, load_tensors, save_checkpoint, save_tensors
from baselines.runs.folder import read_record, read_run, write_record
from baselines.runs.logs import forget_later, read_rows
from vlgym.errors import UserError

CONFIG = replace(
    vldac.Config(**SMALL), updates=1, num_envs=2, rollout_steps=2, minibatch=4, value_warmup=0, eval_every=1,
    eval_episodes=2, lora=LoraOptions(rank=2),
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with adapters over a warm start, with its best model."""
    out = tmp_path_factory.mktemp("runs") / "run"
    vldac.train(replace(CONFIG, out=out))
    return out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two checkpoints, with a file of parts as several processes write them."""

    def beside(place: Path) -> None:
        (place / "shards").mkdir()
        (place / "shards" / "shard-00001-of-00002.safetensors").write_bytes(bytes(range(200)))
        (place / "shards" / "shard-00002-of-00002.safetensors").write_bytes(bytes(range(100)))

    for update in (1, 2):
        save_checkpoint(tmp_path, {"x": torch.arange(50.0)}, {"update": update, "more": "words"}, beside=beside)
    return tmp_path


def flip(path: Path, place: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_flipped_bit_in_any_file_of_a_checkpoint_is_refused_by_name(folder: Path) -> None:
    newest = checkpoints(folder)[-1]
    names = sorted(files_of(newest))
    assert names == [
        "checksums.json", "shards/shard-00001-of-00002.safetensors", "shards/shard-00002-of-00002.safetensors",
        "state.json", "tensors.safetensors",
    ]  # fmt: skip
    draw = random.Random(0)
    for name in names:
        whole = (newest / name).read_bytes()
        for _ in range(40):
            flip(newest / name, draw.randrange(len(whole)), draw.randrange(8))
            with pytest.raises(UserError, match=r"update-000002 is damaged .*Remove that folder to go on from") as told:
                load_checkpoint(folder)
            assert name in str(told.value) or name == "checksums.json"
            assert "\n" not in str(told.value)
            (newest / name).write_bytes(whole)
    assert load_checkpoint(folder)[1]["update"] == 2


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.unlink(),
        lambda path: path.rename(path.with_name("other")),
        lambda path: path.write_bytes(path.read_bytes() + b"\n"),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
    ],
    ids=["deleted", "renamed", "longer", "shorter", "empty"],
)
def test_a_file_of_a_checkpoint_that_is_not_as_it_was_is_refused(folder: Path, harm: Callable[[Path], None]) -> None:
    newest = checkpoints(folder)[-1]
    for name in files_of(newest):
        copy = newest.parent / "update-000003"
        shutil.copytree(newest, copy)
        harm(copy / name)
        with pytest.raises(UserError, match="update-000003 is damaged"):
            load_checkpoint(folder)
        shutil.rmtree(copy)


def test_a_file_too_many_or_the_name_of_another_update_is_refused(folder: Path) -> None:
    newest = checkpoints(folder)[-1]
    (newest / "shards" / "shard-00003-of-00002.safetensors").write_bytes(b"more")
    with pytest.raises(UserError, match=r"shard-00003-of-00002\.safetensors is not in checksums\.json"):
        load_checkpoint(folder)
    (newest / "shards" / "shard-00003-of-00002.safetensors").unlink()
    newest.rename(folder / "update-000007")
    with pytest.raises(UserError, match=r"update-000007 is damaged \(state\.json is not of update 000007\)"):
        load_checkpoint(folder)


def test_processes_share_the_files_that_they_read_together(folder: Path) -> None:
    newest = checkpoints(folder)[-1]
    for name in ("shard-00001-of-00002.safetensors", "shard-00002-of-00002.safetensors"):
        flip(newest / "shards" / name, 3, 3)
        found = []
        for rank in range(2):
            try:
                load_checkpoint(folder, rank=rank, size=2)
            except UserError as error:
                found.append(str(error))
        assert len(found) == 1, "one process looks into each"
        assert name in found[0]
        flip(newest / "shards" / name, 3, 3)
    for name in ("state.json", "tensors.safetensors"):  # what all of them read, all of them check
        flip(newest / name, -3, 3)
        for rank in range(3):
            with pytest.raises(UserError, match=rf"{name} holds other bytes".replace(".", r"\.")):
                load_checkpoint(folder, rank=rank, size=3)
        flip(newest / name, -3, 3)


def test_a_state_that_lacks_something_is_one_line(tmp_path: Path) -> None:
    good: dict[str, Any] = {
        "update": 1, "env_steps": 4, "max_new_tokens": 8, "sampler": "", "order": "", "collectors": [], "learner": {},
        "warm": asdict(WarmReport()),
        "evaluations": [],
    }  # fmt: skip
    for name in good:
        for wrong in ({k: v for k, v in good.items() if k != name}, {**good, name: None}, {**good, name: 1.5}):
            with pytest.raises(UserError, match=f"state.json: {name} is .*Remove that folder"):
                check_state(wrong, tmp_path)
    with pytest.raises(UserError, match=r"state\.json: update is None"):
        check_state({}, tmp_path)


@pytest.mark.parametrize("text", ["{}", "[]", "null", '{"update": "1"}', "", "[" * 100_000])
def test_a_state_of_other_json_is_one_line_even_where_its_checksum_is_right(tmp_path: Path, text: str) -> None:
    from vlgym.checksums import write_checksums

    newest = save_checkpoint(tmp_path, {"x": torch.ones(1)}, {"update": 1})
    (newest / "state.json").write_text(text)
    write_checksums(newest)
    with pytest.raises(UserError, match=r"is damaged .* begin the run again, with --overwrite") as told:
        load_checkpoint(tmp_path)
    assert "\n" not in str(told.value)


def test_the_weights_under_adapters_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "base.safetensors"
    expected = save_tensors(path, {"x": torch.ones(9)})
    assert load_tensors(path, expected)["x"].tolist() == [1.0] * 9
    assert [path.name for path in tmp_path.iterdir()] == ["base.safetensors"]
    for place in (10, path.stat().st_size - 2):
        flip(path, place, 2)
        with pytest.raises(UserError, match=r"base\.safetensors is damaged"):
            load_tensors(path, expected)
        flip(path, place, 2)
    path.unlink()
    with pytest.raises(UserError, match=r"base\.safetensors is damaged"):
        load_tensors(path, expected)


def log_of(tmp_path: Path) -> Path:
    from vlgym.checksums import seal

    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(seal({"update": n, "loss": n / 8})) + "\n" for n in range(1, 5)))
    return path


def test_a_flipped_bit_in_a_log_is_refused_and_loses_no_row(tmp_path: Path) -> None:
    path = log_of(tmp_path)
    whole = path.read_bytes()
    assert [row["update"] for row in read_rows(path)] == [1, 2, 3, 4]
    assert "crc32" not in read_rows(path)[0]
    for place in range(len(whole)):
        flip(path, place, place % 8)
        before, number = path.read_bytes(), whole[: place + 1].count(b"\n") + (whole[place] != 10)
        with pytest.raises(UserError, match=rf"log\.jsonl, line {number}: .*remove this one to go on"):
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


@pytest.mark.parametrize("data", [{"config": {}, "environments": {}, "format": 4, "n": 1.25}, [{"a": 1}, {"b": "ü"}]])
def test_a_flipped_bit_in_a_record_is_refused(tmp_path: Path, data: Any) -> None:
    path = tmp_path / "run.json"
    write_record(path, data)
    assert read_record(path) == data
    whole = path.read_bytes()
    for place in range(len(whole)):
        flip(path, place, place % 8)
        with pytest.raises(UserError, match=r"run\.json cannot be read"):
            read_record(path)
        if isinstance(data, dict):
            with pytest.raises(UserError, match=r"run\.json cannot be read"):
                read_run(tmp_path)
        path.write_bytes(whole)


def harmed(finished: Path, tmp_path: Path, name: str) -> Path:
    """A copy of the run with one flipped bit in a file."""
    out = tmp_path / "copy"
    shutil.copytree(finished, out)
    size = (out / name).stat().st_size
    flip(out / name, random.Random(name).randrange(size), 4)
    return out


@pytest.mark.parametrize(
    "name",
    ["run.json", "log.jsonl", "base.safetensors", "checkpoints/update-000001/state.json", "best/evaluation.json",
     "checkpoints/update-000001/tensors.safetensors"],
)  # fmt: skip
def test_a_run_is_not_resumed_from_a_damaged_file(finished: Path, tmp_path: Path, name: str) -> None:
    out = harmed(finished, tmp_path, name)
    before = files_of(out)
    with pytest.raises(UserError, match=Path(name).name):
        vldac.train(vldac.Config(out=out, resume=True, updates=2))
    after = files_of(out)
    assert {path: data for path, data in after.items() if "tensorboard" not in path} == {
        path: data for path, data in before.items() if "tensorboard" not in path
    }


def test_a_resumed_run_still_knows_the_weights_under_its_adapters(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "copy")
    state = json.loads((tmp_path / "copy" / "checkpoints" / "update-000001" / "state.json").read_text())
    with Run(vldac.Config(out=tmp_path / "copy", resume=True, updates=2)) as run:
        assert run.state.base == state["base"]  # or the next checkpoint would not say what to resume from
    assert state["base"]["size"] == (finished / "base.safetensors").stat().st_size


@pytest.mark.parametrize("name", ["model/model.safetensors", "best/config.json", "adapter/adapter_model.safetensors"])
def test_a_damaged_model_is_not_loaded(finished: Path, tmp_path: Path, name: str) -> None:
    from baselines.models.load import load_family

    out = harmed(finished, tmp_path, name)
    with pytest.raises(UserError, match=rf"is damaged: {Path(name).name} holds other bytes.*Save the model again"):
        load_family(str((out / name).parent))
    load_family(str((finished / name).parent))

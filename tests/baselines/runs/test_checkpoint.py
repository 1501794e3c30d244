"""Checkpoints come back bit for bit, are whole or absent; a damaged file is one line of error."""

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
from stage import files_of
from toys import JUNK, litter

from baselines import vldac
from baselines.models.folders import check_replaceable
from baselines.models.load import load_family
from baselines.policies.hf import hash_model
from baselines.runs.folder import (
    check_new,
    checkpoints,
    load_checkpoint,
    load_module,
    load_tensors,
    module_tensors,
    own_storage,
    read_checkpoint_record,
    read_run_record,
    save_checkpoint,
    save_tensors,
    write_record,
)
from baselines.runs.logs import RunLog, forget_later, read_rows
from vlgym.errors import UserError
from vlgym.files import check_files, seal, written_whole


def test_saving_copies_only_tensors_that_share_their_memory(tmp_path):
    x = torch.arange(6.0).view(2, 3)
    ready = own_storage({"x": x, "again": x, "row": x[1], "turned": x.t().contiguous().t()})
    assert ready["x"].data_ptr() == x.data_ptr()
    assert len({tensor.data_ptr() for tensor in ready.values()}) == 4
    save_checkpoint(tmp_path, {"x": x, "again": x, "row": x[1], "turned": x.t()}, {"update": 1})
    saved, _ = load_checkpoint(tmp_path)
    assert saved["turned"].tolist() == x.t().tolist()
    assert saved["row"].tolist() == [3.0, 4.0, 5.0]
    assert torch.equal(saved["x"], saved["again"])


def test_only_the_newest_checkpoints_remain_and_the_newest_is_loaded(tmp_path):
    for update in range(1, 5):
        save_checkpoint(tmp_path, {"x": torch.tensor([float(update)])}, {"update": update}, keep=2)
    assert [path.name for path in checkpoints(tmp_path)] == ["update-000003", "update-000004"]
    assert load_checkpoint(tmp_path)[0]["x"].item() == 4.0


def test_junk_in_folders_of_training_stops_nothing(tmp_path):
    check_new(litter(tmp_path / "run"))
    check_replaceable(litter(tmp_path / "model"), "--export", ("config.json",), "config.json", "model")
    folder = tmp_path / "checkpoints"
    save_checkpoint(folder, {"a": torch.ones(1)}, {"update": 1})
    litter(folder / "update-7")
    litter(folder)
    assert [path.name for path in checkpoints(folder)] == ["update-000001"]
    assert load_checkpoint(folder)[1]["update"] == 1
    with written_whole(tmp_path / "whole") as part:
        (part / "config.json").write_text("{}")
        litter(part)
    for name in JUNK:
        (tmp_path / "whole" / name).unlink()
    check_files(tmp_path / "whole")
    known = hash_model(str(tmp_path / "whole"), None)
    litter(tmp_path / "whole")
    assert hash_model(str(tmp_path / "whole"), None) == known


@pytest.mark.parametrize("number", [torch.nan, -torch.inf])
def test_a_tensor_that_is_not_finite_is_refused_by_name(tmp_path, number):
    tensors = {"a": torch.zeros(3), "b": torch.tensor([1.0, number]), "steps": torch.tensor(7)}
    newest = save_checkpoint(tmp_path, tensors, {"update": 1})
    with pytest.raises(UserError, match=rf"The checkpoint {newest}: b holds NaN or infinity"):
        load_checkpoint(tmp_path)
    expected = save_tensors(tmp_path / "base.safetensors", tensors)
    with pytest.raises(UserError, match=r"base\.safetensors: b holds NaN or infinity"):
        load_tensors(tmp_path / "base.safetensors", expected)


def test_weights_of_another_model_are_refused(tmp_path):
    net, wider = (torch.nn.Linear(width, 3) for width in (4, 5))
    save_checkpoint(tmp_path, module_tensors("net", net), {"update": 1})
    before = wider.weight.clone()
    with pytest.raises(UserError, match=r"another model: net\.weight"):
        load_module("net", wider, load_checkpoint(tmp_path)[0])
    assert torch.equal(before, wider.weight)


def test_a_kill_while_the_newest_is_replaced_leaves_it(tmp_path):
    for update in (1, 2):
        save_checkpoint(tmp_path, {"x": torch.full((2,), float(update))}, {"update": update})
    (tmp_path / "update-000002").rename(tmp_path / ".update-000002.old")
    (tmp_path / ".update-000002.part").mkdir()
    (tmp_path / ".update-000000.gone").mkdir()
    assert load_checkpoint(tmp_path)[1]["update"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["update-000001", "update-000002"]


def test_no_file_of_a_run_leads_out_of_its_folder(tmp_path):
    """The links of a stranger's run: to a folder, to a file, and what a kill could have left."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "key").write_text("kept")
    for name in ("checkpoints", "run", "file"):
        (tmp_path / name).symlink_to(place / "key" if name == "file" else place)
    with pytest.raises(UserError, match="is a link"):
        save_checkpoint(tmp_path / "checkpoints", {"x": torch.zeros(1)}, {"update": 1})
    with pytest.raises(UserError, match="is a link"):
        save_tensors(tmp_path / "file", {"x": torch.zeros(1)})
    out = tmp_path / "out"
    out.mkdir()
    for name in (".update-000001.part", ".update-000001.old", ".update-000000.gone"):
        (out / name).symlink_to(place)
    for update in (1, 2):
        save_checkpoint(out, {"x": torch.zeros(1)}, {"update": update}, keep=1)
    assert [path.name for path in out.iterdir()] == ["update-000002"]
    for name, link in (("log.jsonl", place / "key"), ("failures.jsonl", place / "key"), ("tensorboard", place)):
        (out / name).symlink_to(link)
        with pytest.raises(UserError, match=r"is a link|line 1"):
            RunLog(out, name="vldac", total=3, done=0)
        (out / name).unlink()
    assert [(path.name, path.read_text()) for path in place.iterdir()] == [("key", "kept")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for update in (1, 2):
        save_checkpoint(tmp_path, {"x": torch.arange(50.0)}, {"update": update, "more": "words"})
    return tmp_path


def flip(path: Path, place: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def test_a_flipped_bit_in_any_file_of_a_checkpoint_is_refused_by_name(folder):
    newest = checkpoints(folder)[-1]
    names = sorted(files_of([newest]))
    assert names == ["checksums.json", "state.json", "tensors.safetensors"]
    draw = random.Random(0)
    for name in names:
        whole = (newest / name).read_bytes()
        for _ in range(5):
            flip(newest / name, draw.randrange(len(whole)), draw.randrange(8))
            words = r"update-000002 is damaged .*Remove that folder to go on from"
            with pytest.raises(UserError, match=words) as error:
                load_checkpoint(folder)
            assert name in str(error.value) or name == "checksums.json"
            assert "\n" not in str(error.value)
            (newest / name).write_bytes(whole)
    assert load_checkpoint(folder)[1]["update"] == 2


def log_of(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    rows = [seal({"update": n, "loss": n / 8}) for n in range(1, 5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_flipped_bit_in_a_log_is_refused_and_loses_no_row(tmp_path):
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


def test_the_cut_last_line_of_a_log_is_left_out_wherever_it_is_cut(tmp_path):
    path = log_of(tmp_path)
    whole = path.read_bytes()
    for end in range(whole.rindex(b"\n", 0, -1) + 1, len(whole)):
        path.write_bytes(whole[:end])
        assert [row["update"] for row in read_rows(path)] == [1, 2, 3]
    forget_later(path, 2)
    assert [row["update"] for row in read_rows(path)] == [1, 2]
    path.write_bytes(b"")
    assert read_rows(path) == []


def test_a_flipped_bit_in_a_record_is_refused(tmp_path):
    path, data = tmp_path / "run.json", {"config": {}, "environments": {"ü": 1}, "format": 4, "n": 1.25}
    write_record(path, data)
    assert read_checkpoint_record(path) == data
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        flip(path, place, place % 8)
        with pytest.raises(UserError, match=r"run\.json cannot be read"):
            read_run_record(tmp_path)
        path.write_bytes(whole)


def test_a_run_is_not_resumed_from_a_damaged_file_and_a_damaged_model_is_not_loaded(finished, tmp_path):
    out = shutil.copytree(finished, tmp_path / "copy", ignore=shutil.ignore_patterns("tensorboard"))
    for name in ("checkpoints/update-000003/tensors.safetensors", "model/model.safetensors"):
        flip(out / name, random.Random(name).randrange((out / name).stat().st_size), 4)
    before = files_of([out])
    with pytest.raises(UserError, match=r"tensors\.safetensors"):
        vldac.train(vldac.Config(out=out, resume=True, updates=5))
    assert files_of([out]) == before
    words = r"is damaged: model\.safetensors holds other bytes.*Save the model again"
    with pytest.raises(UserError, match=words):
        load_family(str(out / "model"))

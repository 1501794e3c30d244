"""Checkpoints come back bit for bit, are whole or absent, and refuse another model."""

from __future__ import annotations

import pytest
import torch
from toys import JUNK, litter

from baselines.models.folders import check_replaceable
from baselines.policies.hf import hash_model
from baselines.runs.folder import (
    check_new,
    checkpoints,
    load_checkpoint,
    load_module,
    load_tensors,
    module_tensors,
    own_storage,
    save_checkpoint,
    save_tensors,
)
from baselines.runs.logs import RunLog
from vlgym.errors import UserError
from vlgym.files import check_files, written_whole


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

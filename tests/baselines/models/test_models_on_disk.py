"""`--model` with what is no model: a damaged or foreign folder, a name of no model, a Hub that does not answer."""

from __future__ import annotations

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from baselines.learning.config import RunConfig
from baselines.models.load import load_family
from baselines.runs.threads import check_device
from vlgym.errors import UserError

WEIGHTS, UP = "model.safetensors", "model.layers.0.mlp.up_proj.weight"


def cut(name, length):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:length])


def put(name, text):
    return lambda folder: (folder / name).write_text(text)


def without_one(folder):
    tensors = load_file(folder / WEIGHTS)
    del tensors[UP]
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def of_other_shape(folder):
    tensors = load_file(folder / WEIGHTS)
    tensors[UP] = torch.zeros(3, 3)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def foreign(folder):
    save_file({"a": torch.zeros(3)}, folder / WEIGHTS, metadata={"format": "pt"})


def without_tokenizer(folder):
    for path in folder.glob("tokenizer*"):
        path.unlink()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut(WEIGHTS, 3000), "the model cannot be loaded"),
        (foreign, "incomplete, or of another model than its config.json: lm_head.weight and 69 more"),
        (without_one, r"another model than its config.json: model\.language_model\.layers\.0\.mlp\.up_proj\.weight\."),
        (of_other_shape, r"another model than its config.json: model\.language_model\.layers\.0\.mlp\.up_proj\.weight"),
        (put("config.json", "{hello"), "not a valid JSON file"),
        (
            put("config.json", '{"model_type": "bert"}'),
            "of the family 'bert', which does not chat about images. Choose tiny",
        ),
        (without_tokenizer, r"tokenizer belongs to another model than the weights: it has no '<\|im_end\|>'"),
        (put("preprocessor_config.json", "{hello"), "its preprocessor_config.json cannot be read"),
    ],
)
def test_a_damaged_or_foreign_model_is_one_line(model_folder, tmp_path, damage, words):
    folder = shutil.copytree(model_folder("qwen2_vl"), tmp_path / "model")
    assert load_family(str(folder)) is not None
    damage(folder)
    with pytest.raises(UserError, match=words) as told:
        load_family(str(folder))
    assert "\n" not in str(told.value)


def test_what_can_be_no_models_name_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("huggingface_hub.utils.get_session", lambda: pytest.fail("the Hub was asked"))
    for name in ("gpt-4o", "a b/c", "/nonexistent/model", "https://example.org/x"):
        with pytest.raises(
            UserError, match=r"There is no such folder, and a Hub name looks like OWNER/NAME.*chats about images"
        ):
            load_family(name)


def test_a_hub_that_does_not_answer_is_asked_once(monkeypatch):
    asked = []

    class Session:
        def head(self, address, timeout):
            asked.append(address)
            raise ConnectionError("Name or service not known")

    monkeypatch.setattr("huggingface_hub.utils.get_session", Session)
    with pytest.raises(UserError, match=r"the Hub cannot be reached \(Name or service not known\)"):
        load_family("Qwen/Qwen2-VL-2B-Instruct")
    assert len(asked) == 1


def test_a_misspelt_device_is_refused():
    for device in ("gpu", "cuda:x", "cuda:-1", ""):
        with pytest.raises(UserError, match="is not one of cpu, cuda, cuda:NUMBER"):
            check_device(device)


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("cuda", "cuda:7"):
        with pytest.raises(UserError, match=r"there is no CUDA device here; .*Use --device cpu"):
            RunConfig(device=name).resolve()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    check_device("cuda:1")
    with pytest.raises(UserError, match="this machine's CUDA devices are cuda:0 to cuda:1"):
        check_device("cuda:7")

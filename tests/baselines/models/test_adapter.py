"""Adapters in PEFT's own format: its library loads what is written here, and `--model` takes what
it wrote."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from samples import messages, picture
from stage import SMALL
from torch.testing import assert_close
from transformers import AutoModelForImageTextToText

from baselines import vldac
from baselines.engine.engine import Engine
from baselines.models.load import load_family
from baselines.models.lora import ADAPTER_WEIGHTS, CONFIG, LoraOptions, adapters, add_adapters, export_adapter
from baselines.plugin import make_hf
from vlgym.errors import UserError

LORA = replace(
    vldac.Config(**SMALL), lora=LoraOptions(rank=2, alpha=3.0), lr=3e-3, final_lr=1.0,
    value_warmup=0, updates=1,
    eval_episodes=0, invalid_penalty=0.5, record_every=0, num_envs=2, rollout_steps=2, minibatch=4,
    epochs=1,
)  # fmt: skip


def learnt(family, options):
    """The family, its adapters as if they had learnt something."""
    add_adapters(family, options, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in list(adapters(family).parameters()):
            parameter.normal_(0.0, 0.05, generator=generator)
    return family


@torch.no_grad()
def scores(family):
    """Log-probabilities of a reply to a prompt with a picture."""
    engine = Engine(family, max_new_tokens=10)
    prompt = family.encode(messages(picture(1), "which way?"))
    ids = torch.tensor([family.encode_reply("target 3 current 7")])
    return engine.score([prompt], ids, torch.ones_like(ids, dtype=torch.bool))


def peft_model(base, folder):
    return PeftModel.from_pretrained(AutoModelForImageTextToText.from_pretrained(base).eval(), folder)


@pytest.mark.parametrize("name", [pytest.param("qwen2_vl", marks=pytest.mark.exhaustive), "qwen3_vl"])
def test_peft_loads_exported_adapters_and_computes_what_we_compute(name, model_folder, tmp_path):
    base = str(model_folder(name))
    family = learnt(load_family(base), LoraOptions(rank=4, alpha=6.0))
    before = scores(load_family(base))
    folder = export_adapter(family, tmp_path / "adapter", base)
    adapted = peft_model(base, folder)
    assert adapted.peft_config["default"].base_model_name_or_path == base
    ours = scores(family)
    theirs = family.twin({})
    theirs.adopt(adapted.get_base_model())  # with PEFT's layers in it
    assert_close(scores(theirs), ours, atol=1e-5, rtol=0)
    assert (ours - before).abs().max() > 1e-2
    # As a user of the libraries alone has it: logits of plain text.
    ids = torch.tensor([family.encode_text("turn left, turn right")])
    with torch.no_grad():
        expected = family.model(input_ids=ids).logits
        assert_close(adapted(input_ids=ids).logits, expected, atol=1e-5, rtol=0)


def test_a_run_writes_the_merged_model_its_adapters_and_the_model_under_them(tmp_path):
    run = vldac.train(replace(LORA, out=tmp_path / "run", export_adapter=tmp_path / "elsewhere"))
    expected, adapter = scores(run.weights.family), run.out / "adapter"
    base = json.loads((adapter / CONFIG).read_text())["base_model_name_or_path"]
    assert base == str(run.out / "base")
    family = load_family(base, image_tokens=4)
    assert not torch.allclose(scores(family), expected, atol=1e-3)
    family.adopt(peft_model(base, adapter).get_base_model())
    assert_close(scores(family), expected, atol=1e-5, rtol=0)
    elsewhere = tmp_path / "elsewhere"
    assert all((elsewhere / name).read_bytes() == (adapter / name).read_bytes() for name in (CONFIG, ADAPTER_WEIGHTS))
    settings = make_hf(str(adapter), temperature=0.0, threads=1).describe()
    assert settings["max_new_tokens"] == SMALL["max_new_tokens"]
    moved = (tmp_path / "run").rename(tmp_path / "moved")  # the base is then found next to the adapters
    for folder in ("model", "adapter"):
        loaded = load_family(str(moved / folder), image_tokens=4)
        assert_close(scores(loaded), expected, atol=1e-5, rtol=0)


def test_adapters_that_peft_wrote_are_loaded(model_folder, tmp_path):
    base = str(model_folder("qwen2_vl"))
    plain = AutoModelForImageTextToText.from_pretrained(base).eval()
    config = LoraConfig(
        r=3, lora_alpha=5, target_modules=r".*language_model.*\.(q_proj|down_proj)", init_lora_weights=False
    )
    adapted = get_peft_model(plain, config)
    adapted.save_pretrained(tmp_path / "adapter")
    family = load_family(str(tmp_path / "adapter"))
    ids = torch.tensor([family.encode_text("turn left, turn right")])
    with torch.no_grad():
        assert_close(family.model(input_ids=ids).logits, adapted(input_ids=ids).logits, atol=1e-5, rtol=0)
    assert (scores(family) - scores(load_family(base))).abs().max() > 1e-3  # our decoder sees them


@pytest.fixture
def folder(model_folder, tmp_path):
    """Adapters of a model."""
    base = str(model_folder("qwen2_vl"))
    return export_adapter(learnt(load_family(base), LoraOptions(rank=2)), tmp_path / "adapter", base)


def test_damaged_adapters_are_refused_in_one_line(folder):
    (folder / ADAPTER_WEIGHTS).write_bytes((folder / ADAPTER_WEIGHTS).read_bytes()[:100])
    with pytest.raises(UserError, match="adapter") as error:
        load_family(str(folder))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "config", [{"megatron_config": {"x": 1}, "megatron_core": "strangers_code"}, {"peft_type": "PROMPT_TUNING"}]
)
def test_adapters_of_other_kinds_are_refused_before_peft_reads_them(config, folder, monkeypatch):
    monkeypatch.setattr("peft.PeftModel.from_pretrained", lambda *_, **__: pytest.fail("PEFT read it"))
    (folder / "checksums.json").unlink()
    (folder / CONFIG).write_text(json.dumps(json.loads((folder / CONFIG).read_text()) | config))
    with pytest.raises(UserError, match="only plain LoRA is read"):
        load_family(str(folder))


def test_adapters_with_nan_are_refused_by_name(folder):
    (folder / "checksums.json").unlink()
    tensors = load_file(folder / ADAPTER_WEIGHTS)
    name = sorted(tensors)[5]
    tensors[name][0, 0] = torch.nan
    save_file(tensors, folder / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    with pytest.raises(UserError, match=rf"\({ADAPTER_WEIGHTS}: {name} holds NaN or infinity"):
        load_family(str(folder))


def test_adapters_in_a_pickle_are_refused_and_their_tensors_are_not_read(folder):
    torch.save(load_file(folder / ADAPTER_WEIGHTS), folder / "adapter_model.bin")
    for name in (ADAPTER_WEIGHTS, "checksums.json"):  # which adapters from elsewhere have not
        (folder / name).unlink()
    with pytest.raises(UserError, match=rf"{ADAPTER_WEIGHTS} is missing\. Save the adapters again, as safetensors"):
        load_family(str(folder))

"""Fewer bits: moments of 8, base weights of 4, by bitsandbytes where it is installed, refused where it is not."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from baselines import vldac
from baselines.engine.engine import Engine
from baselines.models import lora
from baselines.models.load import load_family
from baselines.models.lora import LoraOptions, add_adapters, trainable_parameters
from vlgym.errors import UserError


def test_without_bitsandbytes_its_options_are_refused_with_what_to_install(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "bitsandbytes" else find(name))
    for changes in ({"optimizer": "adamw8bit"}, {"quantize": "nf4", "lora": LoraOptions(rank=2)}):
        with pytest.raises(UserError, match=r"needs bitsandbytes, which is not installed.*pip install.*\[quant\]"):
            vldac.Config(**changes).resolve()


def test_packed_weights_sample_score_and_train_adapters(prompts):
    pytest.importorskip("bitsandbytes")
    family = load_family("tiny", dtype="bfloat16")
    lora.pack(family, "cpu")
    add_adapters(family, LoraOptions(rank=2), seed=0)
    engine = Engine(family, max_new_tokens=8)
    out = engine.sample(prompts, torch.Generator().manual_seed(0))
    found = engine.score(prompts, out.ids, out.mask)
    assert float((found.detach() - out.logp).abs().max()) < 0.2
    found.sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in trainable_parameters(family))

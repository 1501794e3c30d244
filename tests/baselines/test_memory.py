"""What a run takes is known before it begins, and what does not fit is made smaller: counted against real passes."""

from __future__ import annotations

import pytest
import torch
from samples import picture
from stage import SMALL

from baselines import vldac
from baselines.engine.batching import common_prefix
from baselines.engine.dry_run import peak_bytes, update_bytes
from baselines.engine.engine import Engine
from baselines.learning import command, fit
from baselines.learning.warm_start import WarmConfig
from baselines.models import lora
from baselines.models.load import FAMILIES
from baselines.models.lora import LoraOptions
from baselines.models.shapes import META
from baselines.models.tiny import TinyConfig, build_tiny

ROWS, REPLY = 5, 20


@pytest.fixture(autouse=True)
def _as_a_run_sets_torch_up():
    yield
    torch.use_deterministic_algorithms(False)


def ready(device: torch.device | str) -> Engine:
    """An engine of a tiny family in bfloat16 with adapters."""
    net, words = build_tiny(TinyConfig(layers=3))
    family = FAMILIES["qwen2_vl"][1](net.to(device, torch.bfloat16), words)
    lora.add_adapters(family, LoraOptions(rank=8), seed=0)
    return Engine(family, max_new_tokens=1)


def test_a_dry_run_counts_what_a_real_update_takes():
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    engine = ready("cpu")
    prompts = []
    for i, word in enumerate(["a", "word", "move", "left", "turn"]):  # nothing in common, and not all of one length
        text = {"type": "text", "text": f" {word}" * (90 if i else 80)}
        content = [text, {"type": "image", "image": picture(i, (112, 112))}]
        prompts.append(fit.another(engine.family.encode([{"role": "user", "content": content}]), i))
    assert common_prefix(prompts) == 0
    ids = torch.full((ROWS, REPLY), 40)
    engine.features([image for prompt in prompts for image in prompt.images], train=False)
    shapes = ready(META)
    for flat, score in ((True, engine.score_flat), (False, engine.score)):
        taken = peak_bytes(lambda score=score: score(prompts, ids, ids > 0).sum().backward())
        engine.family.model.zero_grad(set_to_none=True)
        assert update_bytes(shapes, ROWS, max(map(len, prompts)), REPLY, flat=flat) == pytest.approx(taken, rel=0.15)


def test_a_plan_is_printed_and_nothing_is_trained(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["vldac", "--plan", "--out", str(tmp_path / "run"), "--lora.rank", "4"])
    command.main(vldac.Config, vldac.train, "")
    text = capsys.readouterr().out
    for words in ("longest prompt met:", "language model, 1.01 million", "adapters", "update", "it fits into"):
        assert words in text
    assert not (tmp_path / "run").exists()


def test_passes_are_halved_until_they_fit(tmp_path, monkeypatch, capsys):
    tried, plain = [], Engine.score_states

    def score(self, prompts, *args, **kwargs):
        if torch.is_grad_enabled():
            tried.append(len(prompts))
            if len(prompts) > 3:
                raise torch.OutOfMemoryError("pretended")
        return plain(self, prompts, *args, **kwargs)

    monkeypatch.setattr(Engine, "score_states", score)
    small = {"updates": 1, "eval_episodes": 0, "warm": WarmConfig(steps=0), "value_warmup": 0, "minibatch": 12}
    run = vldac.train(vldac.Config(**{**SMALL, **small, "fit": "on", "micro_batch": 12, "out": tmp_path / "run"}))
    assert tried[:3] == [12, 6, 3]
    assert max(tried[3:]) == 3
    assert run.config.micro_batch == 3
    assert "--micro-batch 3 instead of 12" in capsys.readouterr().out

"""Sampler and scorer: a run ends where they disagree."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from stage import SMALL, Stage, roll_out

from baselines import archer, loop, vldac
from baselines.engine.engine import Engine
from baselines.learning.batch import check_log_probs
from baselines.learning.run import Update
from baselines.learning.warm_start import WarmConfig
from baselines.models.load import load_family
from baselines.models.lora import LoraOptions
from vlgym.errors import FailedError

LEARNERS = {
    "vldac": (vldac, vldac.VLDAC, {"value_warmup": 0}),
    "loop": (loop, loop.LOOP, {"group": 2}),
    "archer": (archer, archer.ArCHer, {"critic_warmup": 0, "critic_steps": 1}),
}


def learner_of(name, **changes):
    """A learner on the stage, of which the policy is scored in one pass."""
    module, kind, options = LEARNERS[name]
    config = module.Config(**{**SMALL, **options, "kl_coef": 0.0, "minibatch": 12, "epochs": 1, "lr": 1e-3, **changes})
    return kind(Stage(config.resolve(), keep_reference=True))


def scorer_with_other_weights(dtype: str = "float32") -> Engine:
    return Engine(load_family("tiny", image_tokens=4, seed=1, dtype=dtype), max_new_tokens=6)


def rollout(learner):
    """A rollout with advantages that differ."""
    batch = roll_out(learner)[0]
    batch.advantages = torch.linspace(-1, 1, len(batch.samples))
    return batch


# ---- the bound -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vldac", "loop", "archer"])
def test_a_scorer_with_other_weights_than_the_sampler_ends_the_run_before_any_gradient_step(name):
    learner = learner_of(name)
    before = [p.clone() for p in learner.weights.parameters]
    learner.weights.engine = scorer_with_other_weights()
    with pytest.raises(FailedError, match=r"differ by .* per token .*--max-logp-gap 0\.001.*a bug") as caught:
        learner.train([Update(1, {"rollout": "", "update": ""})])
    assert "\n" not in str(caught.value)
    assert "--dtype float32" not in str(caught.value)  # it is float32
    assert all(torch.equal(a, b) for a, b in zip(before, learner.weights.parameters, strict=True))


def test_the_bound_can_be_left_out():
    learner = learner_of("vldac", max_logp_gap=0.0)
    gap = learner.config.max_logp_gap
    metrics = check_log_probs(scorer_with_other_weights(), rollout(learner), learner.passes, gap)
    assert metrics["rollout/logp_diff_mean"] > 0.1


def test_bounds_are_by_the_type_of_the_weights_and_bfloat16_is_told_of_float32():
    adapters: dict[str, Any] = {"dtype": "bfloat16", "lora": LoraOptions(rank=2), "warm": WarmConfig(steps=0)}
    assert vldac.Config(**SMALL).resolve().max_logp_gap == 1e-3
    assert vldac.Config(**{**SMALL, **adapters}).resolve().max_logp_gap == 0.1
    learner = learner_of("vldac", **adapters)
    scorer, gap = scorer_with_other_weights("bfloat16"), learner.config.max_logp_gap
    with pytest.raises(FailedError, match=r"bfloat16 is too coarse .*--dtype float32"):
        check_log_probs(scorer, rollout(learner), learner.passes, gap)

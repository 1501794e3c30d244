"""Sampler and scorer: a run ends where they disagree, and the scorer's log-probabilities with importance weights."""

from __future__ import annotations

from math import exp
from typing import Any

import pytest
import torch
from stage import SMALL, Stage

from baselines import archer, loop, rl4vlm, vldac
from baselines.engine.engine import Engine
from baselines.learning import losses
from baselines.learning.batch import CheckOptions, check_log_probs
from baselines.learning.optimizers import Metrics
from baselines.learning.run import Update
from baselines.learning.warm_start import WarmConfig
from baselines.models.load import load_family
from baselines.models.lora import LoraOptions
from vlgym.errors import FailedError

LEARNERS = {
    "vldac": (vldac, vldac.VLDAC, {"value_warmup": 0}),
    "step": (rl4vlm, rl4vlm.RL4VLM, {}),
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
    batch = learner.collect()[0]
    batch.advantages = torch.linspace(-1, 1, len(batch.samples))
    return batch


def policy_gradients(learner, batch) -> list[torch.Tensor]:
    """Return the gradients of one step on the whole rollout."""
    found: list[torch.Tensor] = []
    learner.optimizers.named["policy"].step = lambda: found.extend(
        p.grad.clone() for p in learner.weights.parameters if p.grad is not None
    )
    rows = torch.arange(len(batch.samples))
    size = torch.full((len(rows),), 1.0 / len(rows)) if isinstance(learner, loop.LOOP) else len(rows)
    learner.policy_step(batch, rows, size, Metrics())
    return found


# ---- the bound -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vldac", "loop", "archer"])
def test_a_scorer_with_other_weights_than_the_sampler_ends_the_run_before_any_gradient_step(name):
    learner = learner_of(name)
    before = [p.clone() for p in learner.weights.parameters]
    learner.weights.engine = scorer_with_other_weights()
    with pytest.raises(FailedError, match=r"differ by .* per token .*--check\.max-gap 0\.001.*a bug") as caught:
        learner.make(Update(1, {"rollout": "", "update": ""}))
    assert "\n" not in str(caught.value)
    assert "--dtype float32" not in str(caught.value)  # it is float32
    assert all(torch.equal(a, b) for a, b in zip(before, learner.weights.parameters, strict=True))


def test_the_bound_can_be_left_out():
    learner = learner_of("vldac", check=CheckOptions(max_gap=0.0))
    metrics = check_log_probs(scorer_with_other_weights(), rollout(learner), learner.passes, learner.config.check)
    assert metrics["rollout/logp_diff_mean"] > 0.1


def test_bounds_are_by_the_type_of_the_weights_and_bfloat16_is_told_of_float32():
    adapters: dict[str, Any] = {"dtype": "bfloat16", "lora": LoraOptions(rank=2), "warm": WarmConfig(steps=0)}
    assert vldac.Config(**SMALL).resolve().check.max_gap == 1e-3
    assert vldac.Config(**{**SMALL, **adapters}).resolve().check.max_gap == 0.1
    learner = learner_of("vldac", **adapters)
    with pytest.raises(FailedError, match=r"bfloat16 is too coarse .*--dtype float32"):
        check_log_probs(scorer_with_other_weights("bfloat16"), rollout(learner), learner.passes, learner.config.check)


# ---- the scorer's log-probabilities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vldac", "loop"])
def test_with_the_scorers_log_probs_the_ratios_of_the_first_step_are_1(name):
    ratios = {}
    for source in ("sampler", "scorer"):
        learner = learner_of(name, check=CheckOptions(old_log_probs=source, max_gap=1.0))
        batch = rollout(learner)
        batch.old = (batch.old - 0.3).where(batch.mask, batch.old)  # a sampler that differs by design
        metrics = check_log_probs(
            learner.weights.engine, batch, learner.passes, learner.config.check, whole=getattr(learner, "whole", False)
        )
        assert metrics["rollout/logp_diff_mean"] == pytest.approx(0.3, abs=1e-3)
        noted = Metrics()
        rows = torch.arange(len(batch.samples))
        size = torch.full((len(rows),), 1.0 / len(rows)) if name == "loop" else len(rows)
        learner.policy_step(batch, rows, size, noted)
        ratios[source] = noted.values["loss/ratio_max"]
        assert ("rollout/importance_mean" in metrics) == (source == "scorer")
    assert ratios["sampler"] == [pytest.approx(exp(0.3), abs=1e-3)]
    assert ratios["scorer"] == [pytest.approx(1.0, abs=1e-5)]


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learners_policy_gradient_is_weighed(name):
    whole = {"stop_gradient": True} if name == "step" else {}
    gradients = {}
    for weight in (None, 1.0, 0.5):
        learner = learner_of(name, max_grad_norm=1e9, **whole)
        batch = rollout(learner)
        if weight is not None:
            batch.importance = torch.full((len(batch.samples), 1) if name == "step" else batch.mask.shape, weight)
        gradients[weight] = policy_gradients(learner, batch)
    assert sum(float(g.abs().sum()) for g in gradients[None]) > 0
    for plain, ones, halves in zip(*gradients.values(), strict=True):
        assert torch.equal(plain, ones)
        torch.testing.assert_close(halves, plain / 2, atol=1e-9, rtol=1e-5)


# ---- the arithmetic --------------------------------------------------------------------------------------------------


def test_truncated_weights_match_numbers_worked_out_by_hand():
    old = torch.tensor([[-1.0, -2.0, 9.0]], requires_grad=True)
    sampled = torch.tensor([[-1.5, -1.0, -9.0]])
    mask = torch.tensor([[True, True, False]])
    weights = losses.importance_weights(old, sampled, mask, 1.5)
    torch.testing.assert_close(weights, torch.tensor([[1.5, exp(-1.0), 1.0]]))  # e^0.5 = 1.65 is cut, padding is 1
    assert not weights.requires_grad
    torch.testing.assert_close(
        losses.importance_weights(old, sampled, mask, 1.5, whole=True), torch.tensor([[exp(0.5 - 1.0)]])
    )
    assert losses.importance_weights(old, sampled - 100, mask, 7.0, whole=True).tolist() == [[7.0]]


def test_the_weights_multiply_the_terms_of_each_loss():
    new, old = torch.tensor([[-1.0, -1.0], [-2.0, 0.0]]), torch.tensor([[-1.1, -1.0], [-2.0, 0.0]])
    mask = torch.tensor([[True, True], [True, False]])
    advantages, token = torch.tensor([1.0, -1.0]), torch.tensor([[0.5, 2.0], [3.0, 9.0]])
    ppo = vldac.token_ppo_loss(new, old, mask, advantages, clip=0.2, importance=token)
    assert ppo.loss.item() == pytest.approx(-((0.5 * exp(0.1) + 2.0) / 2 - 3.0) / 2)
    step = torch.tensor([[0.5], [3.0]])
    action = torch.ones_like(mask)
    rl4 = rl4vlm.step_ppo_loss(new, old, mask, action, advantages, clip=0.2, thought_weight=1.0, importance=step)
    assert rl4.loss.item() == pytest.approx(-(0.5 * exp(0.1) - 3.0) / 2)
    reinforce = losses.reinforce_loss(new, old, mask, advantages, importance=token)
    assert reinforce.loss.item() == pytest.approx(-((-0.5 - 2.0) - (-6.0)) / 2)
    assert ppo.ratio_max.item() == pytest.approx(exp(0.1))  # what is logged is not weighed

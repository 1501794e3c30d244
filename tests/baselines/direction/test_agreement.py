"""Sampler and scorer: a run ends where they disagree."""

from __future__ import annotations

import pytest
import torch
from bandit import ENDS, make_update, on_stage, perturb, small_engine
from stage import SMALL, roll_out

from baselines import archer, loop, vldac
from baselines.learning.batch import check_log_probs
from baselines.learning.warm_start import WarmConfig
from baselines.models.lora import LoraOptions
from vlgym.errors import FailedError

pytestmark = pytest.mark.usefixtures("some_bandits")


@pytest.mark.parametrize("module", [vldac, loop, archer])
def test_a_scorer_with_other_weights_than_the_sampler_ends_the_run_before_any_gradient_step(module):
    learner = on_stage(module, env=ENDS, num_envs=4, **({"group": 2} if module is loop else {}))
    learner.weights.engine = small_engine()
    perturb(learner, size=0.5)
    before = [p.clone() for p in learner.weights.parameters]
    words = r"differ by .* per token .*--max-logp-gap 0\.001.*a bug"
    with pytest.raises(FailedError, match=words) as caught:
        make_update(learner)
    assert "\n" not in str(caught.value)
    assert "--dtype float32" not in str(caught.value)  # it is float32
    assert all(torch.equal(a, b) for a, b in zip(before, learner.weights.parameters, strict=True))


def test_bounds_are_by_the_type_of_the_weights_can_be_left_out_and_bfloat16_is_told_of_float32():
    adapters = {"dtype": "bfloat16", "lora": LoraOptions(rank=2), "warm": WarmConfig(steps=0)}
    assert vldac.Config(**SMALL).resolve().max_logp_gap == 1e-3
    assert vldac.Config(**{**SMALL, **adapters}).resolve().max_logp_gap == 0.1
    learner, scorer = on_stage(vldac, env=ENDS), small_engine()
    perturb(learner, size=0.5)
    batch = roll_out(learner)[0]
    assert check_log_probs(scorer, batch, learner.passes, 0.0)["rollout/logp_diff_mean"] > 0.1
    scorer.family.model.to(torch.bfloat16)
    with pytest.raises(FailedError, match=r"bfloat16 is too coarse .*--dtype float32"):
        check_log_probs(scorer, batch, learner.passes, 0.1)

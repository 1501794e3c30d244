"""The losses and the shaping of rewards against numbers computed by hand."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from baselines import rl4vlm, vldac
from baselines.learning import losses
from baselines.learning.collect import RewardOptions, repeats_itself
from vlgym.types import StepRecord

T = torch.tensor


def test_a_group_of_one_has_no_advantage():
    for advantages in (losses.leave_one_out, losses.group_relative):
        with pytest.raises(ValueError, match="at least 2"):
            advantages(torch.ones(3, 1))


def test_a_single_advantage_and_equal_ones_survive_normalisation():
    assert losses.normalise_advantages(T([5.0])).item() == 5.0
    assert losses.normalise_advantages(T([2.0, 2.0])).tolist() == [0.0, 0.0]
    assert losses.normalise_advantages(torch.rand(4, dtype=torch.float64)).dtype == torch.float32


def test_token_ppo_matches_a_worked_example_with_clipping_on_both_sides():
    # step 0: A = 2, ratios 1.5 (clipped to 1.2 -> 2.4) and 0.5 (min(1, 1.6) = 1): mean 1.7
    # step 1: A = -1, one token, ratio 1.5: min(-1.5, -1.2) = -1.5
    new = T([[math.log(1.5), math.log(0.5)], [math.log(1.5), 55.0]])
    mask = T([[True, True], [True, False]])
    out = vldac.token_ppo_loss(new, torch.zeros(2, 2), mask, T([2.0, -1.0]), clip=0.2)
    assert out.loss.item() == pytest.approx(-(1.7 - 1.5) / 2, abs=1e-6)
    assert out.clip_fraction.item() == pytest.approx(1.0)
    assert out.ratio_max.item() == pytest.approx(1.5)
    assert out.ratio_mean.item() == pytest.approx(3.5 / 3)
    kl = (0.5 - math.log(1.5)) * 2 + (-0.5 - math.log(0.5))
    assert out.approx_kl.item() == pytest.approx(kl / 3, abs=1e-6)


@pytest.mark.parametrize("rubbish", [float("inf"), float("-inf"), float("nan"), 1e30])
def test_padding_of_any_value_gives_finite_losses_and_zero_gradients(rubbish):
    new = T([[0.1, rubbish], [0.2, 0.3]], requires_grad=True)
    old = T([[0.0, -200.0], [0.0, 0.0]])
    mask = T([[True, False], [True, True]])
    policy = vldac.token_ppo_loss(new, old, mask, T([1.0, -1.0]), clip=0.2)
    kls = [vldac.kl_estimate(new, old, mask, name) for name in ("k1", "k2", "k3")]
    loss = policy.loss + sum(losses.token_mean(each, mask).mean() for each in kls)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(new.grad).all()
    assert new.grad[0, 1] == 0


def test_explained_variance_of_perfect_constant_and_degenerate_critics():
    r = T([1.0, 2.0, 4.0])
    assert losses.explained_variance(r, r) == pytest.approx(1.0)
    assert losses.explained_variance(torch.zeros(3), r) == pytest.approx(0.0)
    assert math.isnan(losses.explained_variance(r, torch.ones(3)))
    assert math.isnan(losses.explained_variance(T([1.0]), T([1.0])))


def test_a_higher_upper_clip_lets_good_replies_rise_further_and_bad_ones_fall_no_further():
    new, old, mask = T([[0.25, -0.5]]).log1p(), T([[0.0, 0.0]]), torch.ones(1, 2, dtype=torch.bool)
    whole = T([[math.log(1.25), 0.0]])  # a ratio of 1.25 for the whole reply
    for advantage, high, tokens, step in (
        (1, None, (1.2 + 0.5) / 2, 1.2), (1, 0.28, (1.25 + 0.5) / 2, 1.25), (-1, 0.28, (-1.25 - 0.8) / 2, -1.25)
    ):  # fmt: skip
        options = {"clip": 0.2, "clip_high": high}
        out = vldac.token_ppo_loss(new, old, mask, T([float(advantage)]), **options)
        assert (float(out.loss), float(out.clip_fraction)) == pytest.approx((-tokens, 0.5 if high else 1.0))
        out = rl4vlm.step_ppo_loss(whole, old, mask, mask, T([float(advantage)]), thought_weight=1.0, **options)
        assert (float(out.loss), float(out.clip_fraction)) == pytest.approx((-step, 0.0 if high else 1.0))


def test_the_ratio_of_a_sequence_is_the_geometric_mean_of_its_tokens_and_moves_all_of_them_alike():
    new = T([[math.log(2.0), math.log(0.9), 7.0], [math.log(1.1), 0.0, 0.0]]).requires_grad_()
    mask = torch.tensor([[True, True, False], [True, True, True]])
    out = vldac.token_ppo_loss(new, torch.zeros(2, 3), mask, T([1.0, -2.0]), clip=0.5, sequence=True)
    one, two = 1.8**0.5, 1.1 ** (1 / 3)
    assert float(out.loss.detach()) == pytest.approx(-(one - 2 * two) / 2)
    assert float(out.ratio_max) == pytest.approx(one)
    out.loss.backward()
    torch.testing.assert_close(new.grad, T([[-one / 4, -one / 4, 0.0], [two / 3, two / 3, two / 3]]))
    clipped = vldac.token_ppo_loss(new, torch.zeros(2, 3), mask, T([1.0, 0.0]), clip=0.2, sequence=True)
    assert float(clipped.loss) == pytest.approx(-1.2 / 2)


def test_the_entropy_of_sampled_tokens_is_in_expectation_the_policys_in_value_and_gradient():
    logits = T([0.3, -1.0, 0.7]).requires_grad_()
    # One reply for each token, weighed by its chance.
    logp, sampled = logits.log_softmax(0), T([0.2, 0.5, 0.3])
    padded = torch.stack([logp, torch.full((3,), float("nan"))], dim=1)
    old = torch.stack([sampled.log(), torch.zeros(3)], dim=1)
    estimate = vldac.entropy(padded, old, torch.tensor([[True, False]] * 3), sampled)
    exact = -(logp.exp() * logp).sum()
    assert float(estimate) == pytest.approx(float(exact))
    by_samples, by_hand = (torch.autograd.grad(x, logits, retain_graph=True) for x in (estimate, exact))
    torch.testing.assert_close(by_samples, by_hand)


BLANK = StepRecord(
    "a/B-v0", 0, 0, 0, [], np.zeros((1, 1, 3), np.uint8), "", "go", (), "ok", 1.0, False, False, False, False
)


def shaped(options: RewardOptions, tokens: int = 5, **changes: Any) -> float:
    return options.shape(replace(BLANK, extra=SimpleNamespace(ids=[0] * tokens), **changes))


def test_by_default_only_an_unreadable_reply_costs():
    assert shaped(RewardOptions(), reward=-2.5) == -2.5
    assert shaped(RewardOptions(), invalid=True) == 0.5


def test_the_length_bonus_is_for_replies_below_the_limit_only():
    options = RewardOptions(length_bonus=0.001, length_limit=200)
    assert shaped(options, 199, reward=0.0) == pytest.approx(0.199)
    assert shaped(options, 200, reward=0.0) == 0.0


@pytest.mark.parametrize(
    ("reply", "span", "expected"),
    [
        ("a b c d a b c d a b c d", None, True), ("a b c d a b c d", None, False),
        ("up up up up up up", None, True), ("", None, False),
        ("push it. <action>" + "up; " * 12 + "</action>", (17, 17 + 48), False),  # a plan may repeat moves
    ],
)  # fmt: skip
def test_a_reply_repeats_itself_if_four_words_come_three_times_outside_the_action(reply, span, expected):
    assert repeats_itself(replace(BLANK, reply=reply, span=span)) is expected
    options = RewardOptions(repetition_penalty=0.2)
    assert shaped(options, reply=reply, span=span) == pytest.approx(0.8 if expected else 1.0)

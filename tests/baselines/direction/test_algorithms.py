"""Tokens of an action, options that reach the policy's step, sampler and scorer that disagree."""

import by_hand
import pytest
import torch
from bandit import ENDS, Steps, make_update, on_stage, perturb, small_engine
from samples import messages, picture
from stage import SMALL, roll_out

from baselines import archer, loop, vldac
from baselines.engine.engine import Sample
from baselines.learning.batch import Metrics, check_log_probs
from baselines.learning.warm_start import WarmConfig
from baselines.models.lora import LoraOptions
from baselines.rl4vlm import action_mask
from vlgym.errors import FailedError


def sample_of(family, text: str) -> Sample:
    ids = torch.tensor(family.encode_reply(text))
    prompt = family.encode(messages(picture(1), "?"))
    return Sample(prompt, ids, torch.zeros(len(ids)), torch.zeros(128), False)


def test_an_action_is_the_reply_from_its_first_characters_token_or_the_last_four_tokens(family):
    text = '{"thoughts": "größer \u2192 \u4e2d", "action": "+"}'
    samples, at = [sample_of(family, each) for each in (text, "no idea", "x")], text.index("+")
    mask = action_mask(family, samples, [(at, at + 1), None, None], len(samples[0].ids) + 2)
    read, unread, short = (row.nonzero().squeeze(-1).tolist() for row in mask)
    ids, end = samples[0].ids.tolist(), len(samples[1].ids)
    assert read == list(range(read[0], len(ids)))
    assert len(family.decode(ids[: read[0]])) <= at < len(family.decode(ids[: read[0] + 1]))
    assert unread == [end - 4, end - 3, end - 2, end - 1]
    assert short == list(range(len(samples[2].ids)))  # all of it


def test_tokens_are_counted_as_by_decoding_every_beginning(family):
    ids = sample_of(family, "caf\u00e9 \u2192 turn left <action>\u00fc</action>").ids.tolist()
    lengths = [len(family.decode(ids[: i + 1])) for i in range(len(ids))]
    for characters in range(1, lengths[-2] + 1):
        tokens = next(i + 1 for i, n in enumerate(lengths) if n >= characters)
        assert family.count_tokens(ids, characters) == tokens


@pytest.mark.parametrize("module", [vldac, loop])
def test_upper_clip_sequence_ratio_and_entropy_reach_the_policys_step(module, monkeypatch):
    options = {"clip_high": 0.28, "ratio": "sequence", "entropy_coef": 0.5, "kl_coef": 0.0, "lr": 1e-9}
    groups = {"env": ENDS, "num_envs": 4, "group": 2} if module is loop else {}
    learner, seen, token_ppo_loss = on_stage(module, **options, **groups), {}, module.token_ppo_loss
    monkeypatch.setattr(module, "token_ppo_loss", lambda *a, **k: seen.update(k) or token_ppo_loss(*a, **k))
    batch, _ = roll_out(learner)
    perturb(learner)
    batch.advantages = torch.zeros(len(batch.samples))
    rows, steps = torch.arange(3), Steps(learner)
    weights = torch.full((len(batch.samples),), 1 / 3)
    learner.policy_step(batch, rows, 3 if module is vldac else weights, Metrics())
    assert (seen["clip"], seen["clip_high"], seen["sequence"]) == (0.2, 0.28, True)
    prompts = [sample.prompt for sample in batch.samples[:3]]
    new = learner.weights.engine.score(prompts, batch.ids[:3], batch.mask[:3])
    chosen = [(new[i][batch.mask[i]], batch.old[i][batch.mask[i]]) for i in rows]
    means = [(now.exp() / old.exp() * now).mean() for now, old in chosen]
    by_hand.close(steps.gradients("policy")[0], 0.5 * sum(means) / 3, learner.weights.parameters)


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

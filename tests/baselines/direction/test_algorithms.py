"""The tokens of an action, budgets, and options that reach the policy's step."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from samples import messages, picture
from stage import SMALL, on_stage, roll_out

from baselines import loop, vldac
from baselines.engine.engine import Sample
from baselines.learning.batch import Metrics
from baselines.rl4vlm import action_mask


def sample_of(family, text: str) -> Sample:
    ids = torch.tensor(family.encode_reply(text))
    prompt = family.encode(messages(picture(1), "?"))
    return Sample(prompt, ids, torch.zeros(len(ids)), torch.zeros(128), False)


@pytest.mark.parametrize("text", ['{"thoughts": "größer \u2192 \u4e2d", "action": "+"}', "+"])
def test_the_action_begins_with_the_token_that_holds_its_first_character(family, text):
    sample, at = sample_of(family, text), text.index("+")
    mask = action_mask(family, [sample], [(at, at + 1)], len(sample.ids) + 2)[0]
    chosen = mask.nonzero().squeeze(-1).tolist()
    assert chosen == list(range(chosen[0], len(sample.ids)))
    assert not mask[len(sample.ids) :].any()
    before = family.decode(sample.ids[: chosen[0]].tolist())
    through = family.decode(sample.ids[: chosen[0] + 1].tolist())
    assert len(before) <= at < len(through)
    assert int(sample.ids[chosen[-1]]) == family.turn_end


def test_the_last_four_tokens_of_a_reply_without_a_readable_action_are_its_action(family):
    long, short = sample_of(family, "no idea"), sample_of(family, "x")
    mask = action_mask(family, [long, short], [None, None], len(long.ids) + 1)
    end = len(long.ids)
    assert mask[0].nonzero().squeeze(-1).tolist() == [end - 4, end - 3, end - 2, end - 1]
    assert mask[1].nonzero().squeeze(-1).tolist() == list(range(len(short.ids)))  # all of it


def test_tokens_are_counted_as_by_decoding_every_beginning(family):
    ids = sample_of(family, "caf\u00e9 \u2192 turn left <action>\u00fc</action>").ids.tolist()
    lengths = [len(family.decode(ids[: i + 1])) for i in range(len(ids))]
    for characters in range(1, lengths[-2] + 1):
        tokens = next(i + 1 for i, n in enumerate(lengths) if n >= characters)
        assert family.count_tokens(ids, characters) == tokens


def test_a_budget_in_environment_steps_alone_bounds_no_updates(tmp_path):
    config = replace(vldac.Config(**SMALL), updates=None, env_steps=50_000)
    assert config.resolve().most_updates >= 50_000
    assert replace(config, env_steps=None).resolve().most_updates == 80


@pytest.mark.parametrize("module", [vldac, loop])
def test_upper_clip_sequence_ratio_and_entropy_reach_the_policys_step(module, monkeypatch):
    options = {"clip_high": 0.28, "ratio": "sequence", "entropy_coef": 0.5, "max_grad_norm": 1e9}
    learner, seen, found = on_stage(module, kl_coef=0.0, lr=1e-9, **options), [], []
    token_ppo_loss = module.token_ppo_loss

    def noted(*args, **more):
        seen.append(more)
        return token_ppo_loss(*args, **more)

    monkeypatch.setattr(module, "token_ppo_loss", noted)
    batch, _ = roll_out(learner)
    batch.advantages = torch.zeros(len(batch.samples))
    parameters, rows = learner.weights.parameters, torch.arange(3)
    learner.optimizers.named["policy"].step = lambda: found.extend(p.grad.clone() for p in parameters)
    weights = torch.full((len(batch.samples),), 1 / 3)
    learner.policy_step(batch, rows, 3 if module is vldac else weights, Metrics())
    assert (seen[0]["clip"], seen[0]["clip_high"], seen[0]["sequence"]) == (0.2, 0.28, True)
    prompts = [sample.prompt for sample in batch.samples[:3]]
    new = learner.weights.engine.score(prompts, batch.ids[:3], batch.mask[:3])
    chosen = [(new[i][batch.mask[i]], batch.old[i][batch.mask[i]]) for i in rows]
    means = [(now.exp() / old.exp() * now).mean() for now, old in chosen]
    expected = torch.autograd.grad(0.5 * sum(means) / 3, parameters)
    assert sum(float(g.norm()) for g in expected) > 0
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-3)

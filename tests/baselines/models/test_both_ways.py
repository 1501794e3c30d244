"""Families with a fast path: the plain engine checks the fast one, reply by reply and number by
number."""

from __future__ import annotations

import pytest
import torch
from publish import publish
from samples import CHATS, messages, picture
from tiny_families import EACH
from torch.testing import assert_close

from baselines.engine.engine import make_engine
from baselines.models.folders import TrainedLimits
from baselines.models.load import load_family
from baselines.policies.hf import EnginePolicy, Sampling
from vlgym.registry.making import make
from vlgym.types import Turn


@pytest.fixture(scope="module", params=EACH)
def engines(request, model_folder, tmp_path_factory):
    folder = publish(model_folder(request.param), tmp_path_factory.mktemp("published") / request.param, request.param)
    made = [make_engine(load_family(str(folder), plain=plain), max_new_tokens=12) for plain in (False, True)]
    assert [each.name for each in made] == ["engine", "generate"]
    never = {*made[0].family.suppressed} | {*made[1].family.suppressed}
    for each in made:  # the library's tokenizers count more tokens as special
        each.suppress[list(never - {*each.family.stop_ids})] = float("-inf")
    return made


def test_both_ways_give_the_same_replies(engines):
    env, name = make("vlgym/NumberLine-v0"), "vlgym/NumberLine-v0"
    turns = [Turn(prompt, env, name, seed=3, turn=turn) for turn, prompt in enumerate(CHATS * 2)]
    one, two = (
        [
            (each.text, each.cut, each.usage.prompt_tokens, each.usage.completion_tokens)
            for each in EnginePolicy(engine, Sampling(11, 0.5, 12), name="x", limits=TrainedLimits()).reply(turns)
        ]
        for engine in engines
    )
    assert one == two
    assert len({text for text, *_ in one}) > 4


def test_both_ways_score_alike_and_send_the_same_gradients(engines):
    ids = torch.randint(65, 90, (3, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.arange(7) < torch.tensor([[7], [3], [5]])
    numbers, gradients = [], []
    for each in engines:
        prompts = [each.family.encode(chat) for chat in CHATS]
        numbers.append([*each.score_states(prompts, ids, mask), *each.reply_states(prompts, ids, mask)])
        each.family.model.zero_grad()
        prompt = each.family.encode(messages(picture(5, (56, 84)), "Go."))
        each.score([prompt], ids[:1, :4], mask[:1, :4], train_vision=True).sum().backward()
        named = each.family.model.named_parameters()
        gradients.append({name: p.grad for name, p in named if p.grad is not None})
        each.family.model.zero_grad()
    for ours, theirs in zip(*numbers, strict=True):
        assert_close(ours, theirs, atol=2e-4, rtol=1e-4)
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        assert_close(gradient, gradients[1][name], atol=1e-3, rtol=1e-2, msg=name)

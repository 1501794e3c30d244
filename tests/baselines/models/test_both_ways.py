"""Families with a fast path: the plain engine checks the fast one, reply by reply and number by number."""

from __future__ import annotations

import pytest
import torch
from publish import publish
from samples import CHATS, messages, picture

from baselines.engine.engine import make_engine
from baselines.models.folders import TrainedLimits
from baselines.models.load import FAMILIES, load_family
from baselines.policies.hf import EnginePolicy, Sampling
from vlgym.registry.making import make
from vlgym.types import Turn


@pytest.fixture(scope="module", params=list(FAMILIES))
def engines(request, model_folder, tmp_path_factory):
    folder = publish(model_folder(request.param), tmp_path_factory.mktemp("published") / request.param, request.param)
    made = [make_engine(load_family(str(folder), plain=plain), max_new_tokens=24) for plain in (False, True)]
    assert [each.name for each in made] == ["engine", "generate"]
    never = {*made[0].family.suppressed} | {*made[1].family.suppressed}
    for each in made:  # the library's tokenizers count more tokens as special
        each.suppress[list(never - {*each.family.stop_ids})] = float("-inf")
    return made


def test_both_ways_give_the_same_replies(engines):
    env = make("vlgym/NumberLine-v0")
    asked = [Turn(prompt, env, "vlgym/NumberLine-v0", seed=3, turn=turn) for turn, prompt in enumerate(CHATS * 2)]
    one, two = (
        EnginePolicy(each, Sampling(11, 0.5, 24), name="x", limits=TrainedLimits()).reply(asked) for each in engines
    )
    for read in (
        lambda reply: reply.text, lambda reply: reply.cut, lambda reply: reply.usage.prompt_tokens,
        lambda reply: reply.usage.completion_tokens,
    ):  # fmt: skip
        assert list(map(read, one)) == list(map(read, two))
    assert len({reply.text for reply in one}) > 4


def test_both_ways_score_alike(engines):
    ids = torch.randint(65, 90, (3, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.arange(7) < torch.tensor([[7], [3], [5]])
    found = []
    for each in engines:
        prompts = [each.family.encode(chat) for chat in CHATS]
        found.append([*each.score_states(prompts, ids, mask), *each.reply_states(prompts, ids, mask)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=1e-4)


def test_both_ways_send_the_same_gradients(engines):
    ids, mask = torch.full((1, 4), 70), torch.ones(1, 4, dtype=torch.bool)
    found = []
    for each in engines:
        each.family.model.zero_grad()
        each.score(
            [each.family.encode(messages(picture(5, (56, 84)), "Go."))], ids, mask, train_vision=True
        ).sum().backward()
        found.append({name: p.grad for name, p in each.family.model.named_parameters() if p.grad is not None})
        each.family.model.zero_grad()
    assert found[0].keys() == found[1].keys()
    for name, gradient in found[0].items():
        torch.testing.assert_close(gradient, found[1][name], atol=1e-3, rtol=1e-2, msg=name)

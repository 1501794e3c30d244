"""Our engine and the library's own way read the same prompt and give the same reply; where they differ by design, so
that is tested.
"""

from __future__ import annotations

import pytest
import torch
from publish import load_processor, publish
from samples import messages, picture

from baselines.engine.engine import Engine
from baselines.models.limits import Limits
from baselines.models.load import FAMILIES, load_family
from baselines.policies.engine_policy import EnginePolicy
from baselines.policies.generate_policy import GeneratePolicy
from baselines.policies.sampling import Sampling
from vlgym.making import make
from vlgym.types import Turn


@pytest.fixture(scope="module")
def env():
    return make("vlgym/NumberLine-v0")


@pytest.fixture(scope="module", params=list(FAMILIES))
def folder(request, model_folder, tmp_path_factory):
    target = tmp_path_factory.mktemp("published") / request.param
    return publish(model_folder(request.param), target, request.param)


def chats() -> list[list[dict]]:
    """One picture; two with history, newlines around; none."""
    size = (61, 107)
    answer = {"role": "assistant", "content": [{"type": "text", "text": "I go on.\n<action>+</action>"}]}
    return [
        messages(picture(1, size), "Which way?\n\nLegal actions: +, -"),
        [*messages(picture(2, size), "A line\n"), answer, *messages(picture(3, size[::-1]), "And now?")],
        [{"role": "user", "content": [{"type": "text", "text": "No picture at all. Say 7."}]}],
    ]


def both(folder, sampling: Sampling) -> tuple[EnginePolicy, GeneratePolicy]:
    family = load_family(str(folder))
    processor, options = load_processor(folder), {"name": "x", "limits": Limits()}
    from transformers import AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    engine = Engine(family, max_new_tokens=sampling.max_new_tokens)
    return EnginePolicy(engine, sampling, **options), GeneratePolicy(model, processor, sampling, **options)


def turns(prompts, env) -> list[Turn]:
    return [Turn(prompt, env, "vlgym/NumberLine-v0", seed=3, turn=turn) for turn, prompt in enumerate(prompts)]


def test_both_ways_give_the_same_replies(folder, env):
    ours, theirs = both(folder, Sampling(11, 0.5, 24))
    # Our engine never draws special tokens; the library's way leaves them where the model has them.
    theirs.never = torch.tensor(ours.engine.family.suppressed)
    asked = turns(chats() * 2, env)
    one, two = ours.reply(asked), theirs.reply(asked)
    assert [reply.text for reply in one] == [reply.text for reply in two]
    assert [reply.cut for reply in one] == [reply.cut for reply in two]
    assert [r.usage.prompt_tokens for r in one] == [r.usage.prompt_tokens for r in two]
    assert [r.usage.completion_tokens for r in one] == [r.usage.completion_tokens for r in two]
    assert len({reply.text for reply in one}) > 4

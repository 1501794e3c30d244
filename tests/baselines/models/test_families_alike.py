"""Properties of every model family, on a tiny model, loaded from a folder as a published one is."""

import pytest
import torch
from publish import publish
from samples import ANSWER, CHATS, DEVICE, INSTRUCTIONS, messages, picture, say
from tiny_families import EACH
from torch.testing import assert_close

from baselines.engine.engine import Engine, common_prefix, make_engine
from baselines.models.folders import TrainedLimits
from baselines.models.load import load_family
from baselines.policies.hf import EnginePolicy, Sampling
from vlgym.registry.making import make
from vlgym.types import Turn


@pytest.fixture(params=EACH)
def family(request, model_folder):
    return load_family(str(model_folder(request.param)), image_tokens=6, device=DEVICE)


@pytest.fixture
def prompts(family):
    """A common beginning; a picture, the same again, another, two in a conversation, none."""

    def ask(seed: int, end: str) -> list[dict]:
        content = messages(picture(seed), end)[0]["content"]
        content = [{"type": "text", "text": INSTRUCTIONS}, *content]
        return [{"role": "user", "content": content}]

    chats = [
        ask(1, "+, -"), ask(1, "+, -"), ask(2, "turn left, turn right, move forward"),
        [*ask(3, "+, -"), ANSWER, *messages(picture(4, (90, 40)), "And now?")],
        [say(INSTRUCTIONS + "hit, stand")],
    ]  # fmt: skip
    return [family.encode(chat) for chat in chats]


def sample(engine, prompts):
    return engine.sample(prompts, torch.Generator().manual_seed(0))


def take_gradients(family) -> dict[str, torch.Tensor]:
    """The gradients so far, which then begin again."""
    gradients = {name: p.grad for name, p in family.model.named_parameters() if p.grad is not None}
    family.model.zero_grad()
    return gradients


def library_log_probs(family, prompt, ids) -> torch.Tensor:
    """Log-probabilities of a reply by the library's model, from pixels and ids."""
    full = torch.cat([prompt.ids.to(DEVICE), ids])[None]
    types = torch.zeros_like(full, dtype=torch.int32)
    types[0, prompt.image_slots] = 1
    inputs = {"input_ids": full}
    if prompt.images:
        inputs["mm_token_type_ids"] = types
        inputs["pixel_values"] = torch.cat([family.patchify(image) for image in prompt.images])
        grids = [image.grid for image in prompt.images]
        inputs["image_grid_thw"] = torch.tensor(grids, device=DEVICE)
    family.model.model.rope_deltas = None  # the library remembers those of its last call
    logits = family.model(**inputs).logits[0, len(prompt) - 1 : -1].float()
    logits = logits.index_fill(1, torch.tensor(family.suppressed, device=DEVICE), float("-inf"))
    return torch.log_softmax(logits, -1).gather(-1, ids[:, None])[:, 0]


def close(actual, expected, atol: float = 3e-5 if DEVICE == "cpu" else 3e-4) -> None:
    assert_close(actual, expected, atol=atol, rtol=0)


@pytest.mark.on_device
def test_sampling_and_scoring_agree_with_the_library_and_see_the_picture(family, prompts):
    assert common_prefix(prompts) >= 20
    engine = Engine(family, max_new_tokens=12)
    out = sample(engine, prompts)
    for i, prompt in enumerate(prompts):
        n = int(out.mask[i].sum())
        expected = library_log_probs(family, prompt, out.ids[i, :n])
        close(out.logp[i, :n], expected.detach())
        expected.sum().backward()
    theirs = take_gradients(family)
    logp = engine.score(prompts, out.ids, out.mask, train_vision=True)
    close(logp.detach(), out.logp)
    logp.sum().backward()
    for p in family.vision_parameters():  # the gradient reaches the picture
        assert p.grad is not None
        assert p.dim() == 1 or p.grad.abs().sum() > 0
    ours = take_gradients(family)
    assert ours.keys() == theirs.keys()
    for name, gradient in theirs.items():
        assert_close(gradient, ours[name], atol=2e-3, rtol=5e-3, msg=name)
    pair = [family.encode(messages(picture(seed), INSTRUCTIONS)) for seed in (1, 2)]
    with torch.no_grad():
        one, other = engine.score(pair, out.ids[:1].expand(2, -1), out.mask[:1].expand(2, -1))
    assert (one - other).abs().max() > 1e-3  # the picture reaches the model


@pytest.mark.on_device
@torch.no_grad()
def test_sampling_and_scoring_agree_in_float32_on_bfloat16_weights(family, prompts, model_folder):
    folder = str(model_folder(family.model.config.model_type))
    coarse = load_family(folder, image_tokens=6, dtype="bfloat16", device=DEVICE)
    assert {p.dtype for p in coarse.model.parameters()} == {torch.bfloat16}
    engine = Engine(coarse, max_new_tokens=8)
    out = sample(engine, prompts)
    fine = Engine(family, max_new_tokens=8).score(prompts, out.ids, out.mask)
    for logp in (out.logp, engine.score(prompts, out.ids, out.mask)):
        assert logp.dtype == torch.float32
        assert (logp - fine)[out.mask].abs().mean() < 0.1
    logits = coarse.logits(coarse.language_model.embed_tokens.weight[:50])
    assert (logits != logits.bfloat16().float()).float().mean() > 0.9  # not rounded


@pytest.mark.parametrize("name", EACH)
def test_the_fast_and_the_plain_engine_give_the_same_replies(name, model_folder, tmp_path):
    folder = str(publish(model_folder(name), tmp_path / name, name))
    made = [make_engine(load_family(folder, plain=plain), max_new_tokens=12) for plain in (False, True)]
    assert [each.name for each in made] == ["engine", "generate"]
    never = {*made[0].family.suppressed} | {*made[1].family.suppressed}
    for each in made:  # the library's tokenizers count more tokens as special
        each.suppress[list(never - {*each.family.stop_ids})] = float("-inf")
    env_id = "vlgym/NumberLine-v0"
    turns = [Turn(prompt, make(env_id), env_id, seed=3, turn=turn) for turn, prompt in enumerate(CHATS * 2)]
    policies = [EnginePolicy(each, Sampling(11, 0.5, 12), name="x", limits=TrainedLimits()) for each in made]
    one, other = (
        [(x.text, x.cut, x.usage.prompt_tokens, x.usage.completion_tokens) for x in policy.reply(turns)]
        for policy in policies
    )
    assert one == other
    assert len({text for text, *_ in one}) > 4

"""Prompt layout, images and positions against the library's own, and the errors for models that cannot be used."""

from __future__ import annotations

import torch
from samples import messages, picture

from baselines.models.load import load_family


def test_equal_messages_have_equal_keys_and_other_pictures_or_words_other_keys(family):
    base = family.encode(messages(picture(1), "Now?"))
    assert family.encode(messages(picture(1).copy(), "Now?")).key == base.key
    changed = picture(1)
    changed[0, 0, 0] ^= 1
    assert family.encode(messages(changed, "Now?")).key != base.key
    assert family.encode(messages(picture(1), "Now!")).key != base.key


def test_building_tiny_twice_gives_the_same_weights_and_moves_no_global_generator():
    before = torch.get_rng_state()
    one, two, other = load_family("tiny", seed=3), load_family("tiny", seed=3), load_family("tiny", seed=4)
    assert torch.equal(before, torch.get_rng_state())
    pairs = zip(one.model.parameters(), two.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(one.language_model.embed_tokens.weight, other.language_model.embed_tokens.weight)


def test_the_frozen_copy_keeps_its_weights_when_the_original_learns(family, engine, prompts):
    from baselines.engine.engine import Engine

    family.model.model.visual.requires_grad_(False)
    frozen = Engine(family.frozen_copy(), max_new_tokens=10, vision_of=engine)
    ids = torch.tensor([family.encode_reply("target 3")] * len(prompts))
    mask = torch.ones_like(ids, dtype=torch.bool)
    before = frozen.score(prompts, ids, mask)
    assert not before.requires_grad
    torch.testing.assert_close(before, engine.score(prompts, ids, mask).detach(), atol=1e-6, rtol=0)
    with torch.no_grad():
        for p in family.language_model.parameters():
            p.mul_(1.1)
    assert torch.equal(frozen.score(prompts, ids, mask), before)
    assert (engine.score(prompts, ids, mask).detach() - before).abs().max() > 1e-3

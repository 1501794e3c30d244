"""The tiny default: prompts, weights, its frozen copy, and the word-list tokenizer."""

import hashlib
import json

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import messages, picture, say

from baselines.models.load import load_family
from baselines.models.tiny import SPECIAL_TOKENS, TAGS, build_tokenizer

TOKENIZER = build_tokenizer()


def test_equal_messages_have_equal_keys_and_other_pictures_or_words_other_keys(family):
    base = family.encode(messages(picture(1), "Now?"))
    assert family.encode(messages(picture(1).copy(), "Now?")).key == base.key
    changed = picture(1)
    changed[0, 0, 0] ^= 1
    assert family.encode(messages(changed, "Now?")).key != base.key
    assert family.encode(messages(picture(1), "Now!")).key != base.key


def test_building_tiny_twice_gives_the_same_weights_and_moves_no_global_generator():
    before = torch.get_rng_state()
    one, two, other = (load_family("tiny", seed=seed).model for seed in (3, 3, 4))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.lm_head.weight, other.lm_head.weight)


def test_a_prompts_system_message_stands_after_the_users_in_one_system_turn(family):
    rules = say("Push the box.", "system")
    turn = messages(np.zeros((28, 28, 3), np.uint8), "Which way?")
    without = family.encode(turn)
    for own, expected in ((None, "Push the box."), ("Be brief.", "Be brief.\n\nPush the box.")):
        family.system = own
        text = family.tokenizer.decode(family.encode([rules, *turn]).ids)
        assert text.startswith(f"<|im_start|>system\n{expected}<|im_end|>\n<|im_start|>user\n")
        assert text.count("system\n") == 1
    assert family.encode(turn).key != without.key, "one prompt for two system messages"


def encode(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False, split_special_tokens=True)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_round_trips(text):
    assert TOKENIZER.decode(encode(text), clean_up_tokenization_spaces=False) == text


def test_special_tokens_spelt_in_a_text_stay_letters_and_tags_are_one_token_each():
    special = set(TOKENIZER.convert_tokens_to_ids(list(SPECIAL_TOKENS)))
    assert len(special) == len(SPECIAL_TOKENS)
    assert not special & set(encode("".join(SPECIAL_TOKENS)))
    assert [len(encode(tag)) for tag in TAGS] == [1, 1]


def test_the_vocabulary_is_the_one_that_checkpoints_were_trained_with():
    vocabulary = json.dumps(sorted(TOKENIZER.get_vocab().items())).encode()
    assert len(TOKENIZER) == 1624
    assert hashlib.sha256(vocabulary).hexdigest()[:16] == "38088a5d214886f0"

"""The word-list tokenizer: any text round-trips, prompts stay short, the vocabulary never moves."""

from __future__ import annotations

import hashlib
import json
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from baselines.models.tiny import SPECIAL_TOKENS, TAGS, build_tokenizer

build = cache(build_tokenizer)


def encode(text: str) -> list[int]:
    return build().encode(text, add_special_tokens=False, split_special_tokens=True)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_round_trips(text):
    assert build().decode(encode(text), clean_up_tokenization_spaces=False) == text


def test_special_tokens_spelt_in_a_text_stay_letters():
    special = set(build().convert_tokens_to_ids(list(SPECIAL_TOKENS)))
    assert len(special) == len(SPECIAL_TOKENS)
    assert not special & set(encode("".join(SPECIAL_TOKENS)))


def test_the_tags_of_the_default_reply_style_are_one_token_each():
    assert [len(encode(tag)) for tag in TAGS] == [1, 1]
    assert len(encode("target 3 current 1 <action>+</action>")) == 8


def test_the_vocabulary_is_the_one_that_checkpoints_were_trained_with():
    vocabulary = json.dumps(sorted(build().get_vocab().items())).encode()
    assert (len(build()), hashlib.sha256(vocabulary).hexdigest()[:16]) == (1624, "38088a5d214886f0")

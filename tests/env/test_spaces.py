"""The text spaces hold what models write, and matching an action forgives case and white space only."""

import copy
import sys
import unicodedata

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory
from hypothesis import given
from hypothesis import strategies as st
from toys import installed, make_spec, make_walk

from vlgym.env.spaces import MAX_REPLY, MAX_TEXT, MessageSpace, ReplySpace, SharedTexts, clean_text
from vlgym.errors import UserError
from vlgym.parsers import get_parser, match_legal


def test_any_string_up_to_the_limit_is_a_reply() -> None:
    space = ReplySpace(get_parser("tag"))
    for text in ("", "\x00", "行動 😀", "a" * MAX_REPLY):
        assert space.contains(text)
    assert not space.contains("a" * (MAX_REPLY + 1))
    assert not space.contains(3)
    assert not space.contains(np.zeros(3))


def test_samples_are_well_formed_replies_with_every_legal_action() -> None:
    space = ReplySpace(get_parser("tag"), seed=0)
    space.legal = ("left", "right")
    drawn = [space.sample() for _ in range(50)]
    assert set(drawn) == {"<action>left</action>", "<action>right</action>"}
    space.seed(0)
    assert [space.sample() for _ in range(50)] == drawn
    space.legal = ()
    assert space.sample() == "<action></action>"
    with pytest.raises(ValueError, match="no mask"):
        space.sample(mask=np.ones(2, np.int8))


@pytest.mark.usefixtures("toys_importable")
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_space_of_no_episode_gives_no_sample(mode: str) -> None:
    with pytest.raises(UserError, match=r"knows no legal actions.*vlgym\.wrappers\.Numbers"):
        make_walk().action_space.sample()
    with installed(make_spec()):
        vector = gymnasium.make_vec("vlgym/Walk-v0", num_envs=2, vectorization_mode=mode)
        try:
            vector.reset(seed=1)
            with pytest.raises(UserError, match="a vector's does not"):
                vector.action_space.sample()
        finally:
            vector.close()


def test_reply_spaces_are_equal_when_their_lengths_are() -> None:
    a, b, c = (ReplySpace(get_parser(name), length) for name, length in (("tag", 9), ("json", 9), ("tag", 8)))
    assert a == b
    assert hash(a) == hash(b)
    assert a != c
    assert a != MessageSpace(9)


def test_observation_texts_have_any_letters_and_no_control_characters() -> None:
    space = MessageSpace()
    for text in ("", "a\nb ~", "é 走到 😀 → \u202e"):
        assert space.contains(text)
    for text in ("a\tb", "\r", "\x1b", "\x85", "\ue000", "\ud800", "\U00100000", "a" * (MAX_TEXT + 1), b"a", None):
        assert not space.contains(text)
    assert space.contains(space.sample())


def test_cleaning_keeps_letters_and_drops_what_no_model_is_told() -> None:
    assert clean_text("plain\ntext") == "plain\ntext"
    assert clean_text("Café\tde\u0301jà\r\nvu\r→ ①ﬁ") == "Café    de\u0301jà\nvu\n→ ①ﬁ"
    assert clean_text("a\x00\x1b[31m\x7f\x9b\ud800\ue000\U000f0000b") == "a[31mb"
    assert clean_text("走到第三格", 3) == "走到第"


def test_exactly_control_private_use_and_surrogate_characters_are_dropped() -> None:
    every = [chr(number) for number in range(sys.maxunicode + 1)]
    dropped = {c for c in every if not clean_text(c)}
    assert dropped == {c for c in every if unicodedata.category(c) in ("Cc", "Cs", "Co")} - set("\n\r\t")


@given(st.text(max_size=300))
def test_whatever_is_cleaned_lies_in_the_observation_space(text: str) -> None:
    assert MessageSpace(100).contains(clean_text(text, 100))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("turn left", "turn left"), ("  Turn   LEFT\n", "turn left"), ("cabinet 1", "cabinet 1"),
        ("cabinet  10", "cabinet 10"), ("cabinet", None), ("turn left.", None), ("turnleft", None), ("", None),
        ("a", "a"), ("A", "A"),
    ],
)  # fmt: skip
def test_an_action_is_matched_by_its_words_alone(written: str, meant: str | None) -> None:
    assert match_legal(written, ["turn left", "cabinet 1", "cabinet 10", "A", "a"]) == meant


def test_a_view_shows_what_was_written_after_it_was_taken() -> None:
    space = spaces.Dict({"image": spaces.Box(0, 255, (2, 2, 3), np.uint8), "text": MessageSpace(37)})
    memory = create_shared_memory(space, n=2)
    view = read_from_shared_memory(space, memory, n=2)
    assert list(view["text"]) == ["", ""]
    image = np.full((2, 2, 3), 7, np.uint8)
    write_to_shared_memory(space, 1, {"image": image, "text": "Target: 3\nCurrent: 1"}, memory)
    write_to_shared_memory(space, 0, {"image": image, "text": "x" * 37}, memory)
    assert list(view["text"]) == ["x" * 37, "Target: 3\nCurrent: 1"]
    write_to_shared_memory(space, 0, {"image": image, "text": "shorter"}, memory)
    assert view["text"][0] == "shorter"
    write_to_shared_memory(space, 0, {"image": image, "text": "😀" * 37}, memory)
    assert list(view["text"]) == ["😀" * 37, "Target: 3\nCurrent: 1"]


def test_a_copy_is_a_plain_tuple_that_later_writes_do_not_change() -> None:
    space = MessageSpace(8)
    memory = create_shared_memory(space, n=1)
    write_to_shared_memory(space, 0, "before", memory)
    view = read_from_shared_memory(space, memory, n=1)
    assert isinstance(view, SharedTexts)
    kept = copy.deepcopy(view)
    write_to_shared_memory(space, 0, "after", memory)
    assert kept == ("before",)
    assert view[:1] == ("after",)

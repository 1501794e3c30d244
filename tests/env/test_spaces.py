"""The text spaces hold any reply, and a match of actions forgives case and white space only."""

import copy
import sys
import unicodedata
from contextlib import closing

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory
from toys import installed, make_spec, make_walk

from vlgym.env.spaces import MAX_REPLY, MAX_TEXT, MessageSpace, ReplySpace, clean_text
from vlgym.errors import UserError
from vlgym.parsers import get_parser, match_legal


def test_any_string_up_to_the_limit_is_a_reply() -> None:
    space = ReplySpace(get_parser("tag"))
    assert all(map(space.contains, ("", "\x00", "行動 😀", "a" * MAX_REPLY)))
    assert not any(map(space.contains, ("a" * (MAX_REPLY + 1), 3, np.zeros(3))))


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


def test_a_space_of_no_episode_gives_no_sample() -> None:
    with pytest.raises(UserError, match=r"knows no legal actions.*vlgym\.wrappers\.Numbers"):
        make_walk().action_space.sample()
    with installed(make_spec()), closing(gymnasium.make_vec("vlgym/Walk-v0", 2, "sync")) as vector:
        vector.reset(seed=1)
        with pytest.raises(UserError, match="a vector's does not"):
            vector.action_space.sample()


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
    assert clean_text("Café\tde\u0301jà\r\nvu\r→ ①ﬁ") == "Café    de\u0301jà\nvu\n→ ①ﬁ"
    assert clean_text("走到第三格", 3) == "走到第"


def test_exactly_control_private_use_and_surrogate_characters_are_dropped() -> None:
    every = "".join(map(chr, {*range(sys.maxunicode + 1)} - {*b"\t\n\r"}))
    due = "".join(c for c in every if unicodedata.category(c) not in ("Cc", "Cs", "Co"))
    assert clean_text(every, len(every)) == due


@pytest.mark.parametrize(("written", "meant"), [
    ("  Turn   LEFT\n", "turn left"), ("cabinet 1", "cabinet 1"), ("cabinet  10", "cabinet 10"),
    ("cabinet", None), ("turn left.", None), ("turnleft", None), ("", None), ("a", "a"), ("A", "A"),
])  # fmt: skip
def test_an_action_is_matched_by_its_words_alone(written: str, meant: str | None) -> None:
    assert match_legal(written, ["turn left", "cabinet 1", "cabinet 10", "A", "a"]) == meant


def test_a_view_shows_what_was_written_after_it_was_taken() -> None:
    space = spaces.Dict({"text": MessageSpace(37)})
    memory = create_shared_memory(space, n=2)
    view = read_from_shared_memory(space, memory, n=2)["text"]
    assert list(view) == ["", ""]
    write_to_shared_memory(space, 1, {"text": "Target: 3\nCurrent: 1"}, memory)
    for text in ("x" * 37, "shorter", "😀" * 37):
        write_to_shared_memory(space, 0, {"text": text}, memory)
        assert list(view) == [text, "Target: 3\nCurrent: 1"]
    copied = copy.deepcopy(view)
    write_to_shared_memory(space, 0, {"text": "after"}, memory)
    assert (copied[0], view[:1]) == ("😀" * 37, ("after",))

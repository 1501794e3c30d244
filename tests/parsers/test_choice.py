"""The choice parser: `[2]`, the number of a listed action; and the prompt that lists them."""

import re

import pytest

import vlgym
from vlgym.errors import UserError
from vlgym.parsers import find_end, get_parser, list_actions, write_reply
from vlgym.types import Parsed

LEGAL = ["turn left", "3", "turn right"]
parser = get_parser("choice")


@pytest.mark.parametrize(("text", "read"), [
    ("[1]", Parsed(("turn left",), span=(0, 3))),
    ("so [ 3 ], no", Parsed(("turn right",), span=(3, 8))),
    ("[9], [2] then [1]", Parsed(("3",), span=(5, 8))), ('["3"]', Parsed(("3",), span=(0, 5))),
    ('["up"]', Parsed(("up",), span=(0, 6))), ("[4]", Parsed(failure="illegal_action")),
    ("[0]", Parsed(failure="illegal_action")), ("[-1]", Parsed(failure="no_action")),
    ('[" "]', Parsed(failure="empty_action")), ("turn left", Parsed(failure="no_action")),
])  # fmt: skip
def test_the_first_brackets_hold_the_number_of_the_action(text, read):
    assert parser.parse(text, LEGAL) == read
    assert parser.parse("[1]").failure == "illegal_action"  # a number needs the list


@pytest.mark.parametrize("action", LEGAL)
def test_a_written_reply_is_read_as_its_action_and_ends_where_it_is_over(action):
    text = write_reply(parser, [action], "I see [walls]", LEGAL)
    assert text == f"I see [walls] [{LEGAL.index(action) + 1}]"
    assert parser.parse(text, LEGAL).actions == (action,)
    assert parser.parse(parser.format([action]), LEGAL).actions == (action,)
    assert find_end(parser, text + " and on", LEGAL) == len(text)


@pytest.mark.parametrize(
    "env_id", ["vlgym/EZPoints-v1", pytest.param("vlgym/CoinGame-v0", marks=pytest.mark.exhaustive)]
)
def test_the_prompt_numbers_the_actions_and_the_oracle_wins_by_number(env_id):
    env = vlgym.make(env_id, parser="choice")
    observation, info = env.reset(seed=1)
    assert ", ".join(list_actions(parser, info["vlgym"]["legal_actions"])) in observation["text"]
    assert "[1] " in observation["text"]
    terminated = truncated = False
    while not (terminated or truncated):
        reply = env.unwrapped.solve()
        assert re.search(r"\[\d+\]$", reply)
        _, _, terminated, truncated, info = env.step(reply)
        assert not info["invalid_action"]
    env.close()
    assert info["success"]


def test_an_environment_that_does_not_list_its_actions_refuses_it():
    with pytest.raises(UserError, match="numbers the legal actions"):
        vlgym.make("vlgym/ChessEndings-v0", parser="choice")

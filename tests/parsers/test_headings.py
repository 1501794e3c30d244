"""MageBench's headings: what is read, what is left out, and that what is written is read again."""

import pytest

from vlgym.parsers import find_end, get_parser

LEGAL = ("up", "down", "left", "right")
ONE, PLAN = (get_parser(f"vlgym.parsers.headings:{name}") for name in ("HeadingParser", "HeadingPlanParser"))


@pytest.mark.parametrize(
    ("text", "action"),
    [("# analyze\nA wall is ahead.\n# action\nup", "up"), ("# action\n left \n# action\nright", "left"),
     ("# action down", "down"), ("up", "up"), ("## action\nright", "right")],
)  # fmt: skip
def test_the_action_stands_between_the_first_heading_and_the_second(text: str, action: str) -> None:
    parsed = ONE.parse(text, LEGAL)
    assert parsed.actions == (action,)
    assert parsed.span is not None
    assert text[slice(*parsed.span)] == action


@pytest.mark.parametrize(
    ("text", "failure"),
    [("I would go up.", "no_action"), ("", "no_action"), ("# Action\nup", "no_action"), ("# action\nUp", "no_action"),
     ("Up", "no_action"), ("# action\nup.", "no_action"), ("# action\n", "empty_action"),
     ("# action\n\n# action\nup", "empty_action")],
)  # fmt: skip
def test_without_the_heading_only_a_bare_action_is_read(text: str, failure: str) -> None:
    assert ONE.parse(text, LEGAL).failure == failure


def test_without_a_list_of_legal_actions_a_heading_is_needed() -> None:
    assert ONE.parse("up").failure == "no_action"
    assert ONE.parse("# action\nup").actions == ("up",)


def test_a_plan_keeps_what_is_exactly_an_action_and_drops_the_rest() -> None:
    text = "### Analyze\nTwo boxes, up there.\n### Actions\nup, left,Down, down., jump, , right"
    assert PLAN.parse(text, LEGAL).actions == ("up", "left", "right")
    assert PLAN.parse("up, down", LEGAL).actions == ("up", "down")
    assert PLAN.parse("### actions\nI do not know", LEGAL).failure == "no_action"
    twice = PLAN.parse("### Actions\nup, left ### Actions\ndown, right", LEGAL)
    assert (twice.actions, twice.span) == (("up", "left"), (11, 21))
    assert PLAN.parse("### Actions\nI do not know ### Actions\nup", LEGAL).failure == "no_action"
    assert len(PLAN.parse("### Actions\n" + "up," * 9_000, LEGAL).actions) == 512


@pytest.mark.parametrize("thoughts", ["", "a wall", "I write # action and ### Actions here"])
def test_what_is_written_is_read_again(thoughts: str) -> None:
    assert ONE.parse(ONE.format(["left"], thoughts), LEGAL).actions == ("left",)
    assert PLAN.parse(PLAN.format(["left", "up"], thoughts), LEGAL).actions == ("left", "up")


def test_the_prompt_names_the_headings_and_no_reply_is_over_early() -> None:
    assert all(heading in ONE.describe() for heading in ("# analyze", "# action"))
    assert "### Actions" in PLAN.describe()
    assert find_end(ONE, "# action\nup\n") is None
    assert find_end(PLAN, "### Actions\nup, up\n") is None

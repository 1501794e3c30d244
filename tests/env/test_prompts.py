"""Prompts are exact: fields, history windows, image budgets."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from toys import make_spec

from vlgym.env.prompts import STYLES, PastTurn, PromptBuilder, PromptTemplate
from vlgym.errors import SpecError, UserError
from vlgym.types import Message


def picture(number: int) -> np.ndarray:
    return np.full((2, 2, 3), number, np.uint8)


PAST = [PastTurn(picture(i), f"turn {i}", f"reply {i}") for i in range(3)]


def sketch(messages: list[Message]) -> list[tuple[str, ...]]:
    """Return each message as (role, part, ...), an image as the number it is filled with."""
    return [(each["role"], *map(sketch_part, each["content"])) for each in messages]


def sketch_part(part: dict[str, Any]) -> str:
    return f"#{part['image'][0, 0, 0]}" if part["type"] == "image" else part["text"]


def test_a_template_fills_in_its_fields() -> None:
    template = PromptTemplate(1, "{task} {format} {max_turns}", "{state} / {actions} / {turn} of {max_turns}")
    written = template.write_instructions(task="Go.", reply_format="Say {x}.", max_turns=9)
    assert written == "Go. Say {x}. 9"
    written = template.write_turn(state="Here {task}", actions=["a", "b"], turn=0, max_turns=9)
    assert written == "Here {task} / a, b / 1 of 9"


def test_system_style_and_examples_come_before_the_episode_and_change_the_hash() -> None:
    plain = PromptBuilder(1, 2)
    dressed = PromptBuilder(1, 2, system="Be brief.", style="naive", examples=tuple(PAST[:1]))
    messages = dressed.build("Rules. Reply so.", "turn 2", picture(2), PAST[1:2], system="Rules.")
    assert sketch(messages) == [
        ("system", "Be brief.\n\nRules."),
        ("user", "#0", f"Reply so.\n{STYLES['naive']}\n\n(example)\nturn 0"),
        ("assistant", "reply 0"),
        ("user", "#1", "The examples end here. A new episode begins.\n\nturn 1"),
        ("assistant", "reply 1"),
        ("user", "#2", "turn 2"),
    ]
    assert plain.describe_additions("abcd") == {}
    others = [
        replace(dressed, system="Be kind."), replace(dressed, style="cot"),
        replace(dressed, examples=(replace(PAST[0], image=picture(9)),)),
    ]  # fmt: skip
    assert len({each.describe_additions("abcd")["prompt_hash"] for each in (dressed, *others)}) == 4
    assert dressed.describe_additions("abcd")["prompt_additions"] == {
        "system": "Be brief.", "style": "naive", "example_turns": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("instructions", "turn", "message"),
    [
        ("{task} {format} {state}", "{actions}", r"instructions uses \['state'\]; allowed are"),
        ("{task} {format}", "{actions} {format}", r"turn uses \['format'\]"),
        ("{task} {format}", "{state}", "must state the legal actions"),
        ("{task}", "{actions}", "must state the reply format"),
        ("{task} {format} {", "{actions}", "not a valid template"),
        ("{format} {}", "{actions}", r"uses \[''\]"),
        ("{format} {task.__class__}", "{actions}", "uses"),
    ],
)
def test_a_malformed_template_is_refused(instructions: str, turn: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        PromptTemplate(1, instructions, turn)


def test_the_digest_covers_version_both_texts_and_the_reply_format() -> None:
    texts = ((1, "{format}", "{actions}"), (2, "{format}", "{actions}"), (1, "{format}.", "{actions}"),
             (1, "{format}", "{actions}."))  # fmt: skip
    digests = [PromptTemplate(*each).digest() for each in texts]
    assert len({*digests, PromptTemplate(*texts[0]).digest("tag")}) == 5


@pytest.mark.parametrize(("turns", "images", "expected"), [
    (0, 1, ["#9 I\n\nNOW"]),
    (2, 3, ["#1 I\n\nturn 1", "reply 1", "#2 turn 2", "reply 2", "#9 NOW"]),
    (3, 2, ["I\n\n(image omitted)\nturn 0", "reply 0", "(image omitted)\nturn 1", "reply 1", "#2 turn 2", "reply 2",
            "#9 NOW"]),
    (1, 0, ["I\n\n(image omitted)\nturn 2", "reply 2", "NOW"]),
    (50, 50, ["#0 I\n\nturn 0", "reply 0", "#1 turn 1", "reply 1", "#2 turn 2", "reply 2", "#9 NOW"]),
])  # fmt: skip
def test_a_window_keeps_the_last_turns_drops_the_oldest_images_and_says_the_instructions_once(turns, images, expected):
    messages = sketch(PromptBuilder(turns, images).build("I", "NOW", picture(9), PAST))
    assert [" ".join(parts) for _, *parts in messages] == expected
    assert [role for role, *_ in messages] == ["user", "assistant"] * (len(expected) // 2) + ["user"]
    assert sketch(PromptBuilder(turns, 1).build("I", "NOW", picture(9))) == [("user", "#9", "I\n\nNOW")]


@pytest.mark.parametrize("modality", ["image", "text", "both", "none"])
def test_an_environment_that_shows_no_picture_gets_none_and_omits_none(modality: str) -> None:
    env = SimpleNamespace(modality=modality, vlgym_spec=None)
    layout = PromptBuilder.for_env(env, PromptBuilder(2, 1))
    has_picture = modality in ("image", "both")
    assert sketch(layout.build("I", "NOW", picture(9), PAST))[2:] == [
        ("user", "(image omitted)\nturn 2" if has_picture else "turn 2"),
        ("assistant", "reply 2"),
        ("user", "#9", "NOW") if has_picture else ("user", "NOW"),
    ]


def test_in_words_a_template_speaks_of_words_and_has_another_hash() -> None:
    template = PromptTemplate(1, "The picture shows {task}. {format}", "{state} {actions}")
    worded = replace(template, in_words=True)
    assert worded.write_instructions(task="2", reply_format="F", max_turns=1) == "The words describe 2. F"
    state = {"state": "The picture shows a room.", "actions": ["a"], "turn": 0, "max_turns": 1}
    assert (template.write_turn(**state), worded.write_turn(**state)) == (
        "The picture shows a room. a", "The words describe a room. a",
    )  # fmt: skip
    assert template.digest("F") == "5afb43c838a20645"
    assert worded.digest("F") != template.digest("F")


def test_the_layout_of_an_environment_has_the_history_of_its_card_and_no_negative_one() -> None:
    for limits in ((-1, 1), (0, -1)):
        with pytest.raises(UserError, match=">= 0"):
            PromptBuilder(*limits)
    assert PromptBuilder.for_spec(make_spec(history_turns=3, history_images=2)) == PromptBuilder(3, 2)
    assert PromptBuilder.for_spec(None) == PromptBuilder()

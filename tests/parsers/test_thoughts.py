"""Thoughts: marks of every family, nested, doubly closed, unclosed."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import make_walk

from vlgym.evaluation.episodes import end_reply
from vlgym.parsers import get_parser, read_reply
from vlgym.parsers.thoughts import MARKS, MAX_RAW, MAX_REPLY, blank_thoughts, find_thoughts, shorten
from vlgym.play.rollout import cut_reply
from vlgym.types import Reply

TAG = get_parser("tag")
LEFT, RIGHT = "<action>left</action>", "<action>right</action>"

# Opening, closing, whether the opening may be absent, whether a thought without an end is one.
FAMILIES = [
    ("<think>\n", "\n</think>\n\n", True, True),  # DeepSeek, Qwen3, GLM, ...
    ("<THINK>", "</Think>", True, True),
    # Hy3 and Hy4; Keye-VL; Apriel 1.5 and prompted models; Seed-OSS; MiniMax M3; LongCat; K2 Horizon
    *((f"<{name}>", f"</{name}>", True, True) for name in (
        "think:opensource", "analysis", "thinking", "reason", "reasoning", "Thought", "seed:think",
        "mm:think", "longcat_think", "ifm|think", "ifm|think_fast", "ifm|think_faster",
    )),
    ("[THINK]", "[/THINK]", True, True),  # Magistral, Ministral 3
    ("◁think▷", "◁/think▷", True, True),  # Kimi
    ("<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>", True, True),  # Kimi K3
    ("", "thinkresponse", True, False),  # Kimi K3, stripped
    ("<|channel|>analysis", "<|end|><|start|>assistant<|channel|>final", False, True),  # gpt-oss
    ("<|channel|>analysis", "<|start|>assistant<|channel|>final", False, True),
    ("analysisWe see: ", "assistantfinal", True, True),  # gpt-oss, stripped
    ("<|channel>thought\n", "<channel|>", True, True),  # Gemma 4
    ("<|START_THINKING|>", "<|END_THINKING|><|START_TEXT|>", True, True),  # Cohere
    ("<|inner_prefix|>", "<|inner_suffix|>", True, True),  # Apertus
    ("<|content_thinking|>", "<|end_message|><|message_model|><|content_text|>", False, True),  # Inkling
    ("<|think|>", "<|end|><|begin|>assistant<|content|>", False, True),  # Solar Open
    ("<|think:start|>", "<|think:end|>", True, True),  # Solar Open 2
    ("to=self<|message|>", "<|eom|><|start|>assistant to=user<|message|>", False, True),  # Muse Glimmer
    ("/think\nSo ", "<|im_end|>\n<|im_start|>assistant", True, True),  # HyperCLOVAX 14B
    ("[unused16]", "[unused17]", True, True),  # Pangu
    ("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>", True, True),  # PLaMo 3
    ("<|begin_of_thought|>", "<|end_of_thought|><|begin_of_solution|>", True, True),  # OpenThinker
    ("Here is my thought process:", "Here is my response:", False, False),  # Granite 3.2
    ("Here's my thought process:", "Here's my response:", False, False),
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", True, False),  # Apriel 1.6
]  # fmt: skip


def read(text: str) -> str | None:
    parsed = read_reply(TAG, text)
    return parsed.actions[0] if parsed.actions else parsed.failure


@pytest.mark.parametrize(("opening", "closing", "absent", "unclosed"), FAMILIES)
def test_an_action_that_was_only_considered_is_not_executed(opening, closing, absent, unclosed):
    thought = f"{opening}{LEFT}? Or {RIGHT}? No, {LEFT}."
    assert read(f"{thought}{closing} {RIGHT}") == "right"
    bare = f"Maybe {LEFT}.{closing} {RIGHT} and on"
    assert read(bare) == ("right" if absent else "left")
    assert ("left" in blank_thoughts(bare)) == (not absent), "of other marks"
    assert read(thought) == ("no_action" if unclosed else "left")


def test_every_kind_in_the_table_is_tried() -> None:
    tried = "".join(opening + closing for opening, closing, *_ in FAMILIES).lower()
    assert all(mark.opening in tried and any(closing in tried for closing in mark.closings) for mark in MARKS)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (f"<think>a <think>{LEFT}</think> {LEFT}</think> {RIGHT}", "right"),
        (f"<think>{LEFT}</think> so {LEFT}</think> {RIGHT}", "right"),
        (f"{LEFT}? </think>", "no_action"),
        (f"<think>a</think> {RIGHT} <think>{LEFT}</think> or {LEFT}</think>", "right"),
        (f"I may write <thinking>. {LEFT}? </think> {RIGHT}", "right"),
        (f"<think>as <thinking> says {LEFT}</think> {RIGHT}", "right"),
        (f"<thinking>a <think>b</think> {LEFT}</think> {RIGHT}", "right"),
        (f"<thinking>{LEFT} <think>b</think> c</think> I wait.", "no_action"),
        (f"<|channel|>analysis<|message|>{LEFT}<|end|>{RIGHT}<|end|>", "right"),
        (f"analysis: a wall. {RIGHT}", "right"),
        (f"Here is my response: {RIGHT}", "right"),
        (f"İ<think>{LEFT}</think>İ{RIGHT}", "right"),
    ],
)
def test_nested_doubly_closed_mixed_and_stray_marks(text: str, action: str) -> None:
    assert read(text) == action
    if action == "right":
        span = read_reply(TAG, text).span
        assert span is not None
        assert text[slice(*span)] == "right"


PIECES = ["<think>", "</think>", "<thinking>", "</thinking>", "[THINK]", "<|channel|>analysis", "<|end|>"]
PIECES += ["analysis", "assistantfinal", "Here is my thought process:", "Here is my response:"]
PIECES += ["to=self", "<|think|>", LEFT, RIGHT]


@given(st.lists(st.sampled_from([*PIECES, " ", "x" * 3000, "y" * 9000, "hm"]), max_size=14).map("".join))
def test_thoughts_are_in_order_and_apart_and_a_shortened_reply_is_read_alike(text: str) -> None:
    ends = [place for thought in find_thoughts(text) for place in thought]
    assert ends == sorted(set(ends))
    short = shorten(text)
    assert len(short) <= MAX_REPLY
    assert shorten(short) == short
    one, other = read_reply(TAG, text), read_reply(TAG, short)
    assert (one.actions, one.failure) == (other.actions, other.failure)
    assert one.span is None or text[slice(*one.span)] == one.actions[0]
    assert other.span is None or short[slice(*other.span)] == one.actions[0]


@pytest.mark.parametrize("piece", [*PIECES, "<think></think>", "<thinking></think>", "x</think>"])
def test_many_marks_do_not_hang(piece: str) -> None:
    """A rule whose work grew with the square of the length would hang here."""
    assert len(shorten(piece * 10_000)) <= MAX_REPLY


LONG = "It may be wise. " * 1300


@pytest.mark.parametrize("opening", ["<think>", ""])
@pytest.mark.parametrize("rest", [0, 10_000, MAX_REPLY - len(RIGHT)])
def test_a_thought_of_twenty_thousand_characters_counts_for_nothing(opening, rest):
    text = f"{opening}{LONG}{LEFT}{LONG}</think>{'y' * rest}{RIGHT}"
    assert read(text) == "right"
    env = make_walk()
    env.reset(seed=0)
    info = env.step(text)[4]["vlgym"]
    assert (info["actions"], text[slice(*info["span"])]) == (["right"], "right")
    assert read(text.replace(RIGHT, f"y{RIGHT}")) == ("right" if rest < 16_000 else "unclosed_action")


def test_what_is_read_is_bounded() -> None:
    assert read("x" * (MAX_REPLY - len(RIGHT)) + RIGHT) == "right"
    assert read("x" * (MAX_REPLY - len(RIGHT) + 1) + RIGHT) == "unclosed_action"
    assert read(f"<think>{'x' * MAX_RAW}</think>{RIGHT}") == "no_action"


def test_a_record_keeps_beginning_and_end_of_a_long_thought_and_the_action() -> None:
    text = f"<think>First, {LONG} last.</think> So {RIGHT} and more."
    env = SimpleNamespace(parser=TAG, legal_actions=lambda: ["right"])
    reply, after = end_reply(env, Reply(text))  # type: ignore[arg-type]
    assert (reply.cut, len(reply.text), after) == (False, MAX_REPLY, "")
    assert reply.text.startswith("<think>First, ")
    assert reply.text.endswith(f" last.</think> So {RIGHT}")
    assert f"[... {text.index(' So '):,} characters of thought, shortened ...]" in reply.text
    assert cut_reply(reply) == reply
    assert cut_reply(Reply(text + "x" * MAX_REPLY)).cut


def test_thoughts_are_left_out_of_a_record_that_they_do_not_fit_in() -> None:
    rest = "z" * (MAX_REPLY - 8001 - len(RIGHT))
    text = f"<think>{LONG}</think>{'y' * 8000}<think>{LONG}</think>{rest}{RIGHT}"
    short = shorten(text)
    assert (len(short), short.count("y"), short.count("…"), read(short)) == (MAX_REPLY, 8000, 1, "right")

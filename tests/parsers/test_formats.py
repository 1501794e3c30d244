"""The parsers `tag`, `json` and `plan` read the first legal claim, and each failure has its code."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlgym.parsers import get_parser, match_legal
from vlgym.parsers.tag import MAX_ACTIONS
from vlgym.types import Parsed

TAG, JSON, PLAN = get_parser("tag"), get_parser("json"), get_parser("plan")
MARKS = {
    TAG: ["<action>", "</action>", "left", " ", "<", ">", "\n", "é"],
    JSON: ['{"action": "left"}', '{"action":', "{", "}", '"', "x", "[", '{"a": {}}', "\\"],
    PLAN: ["<plan>", "</plan>", "up", ";", "\n", " ", "1. ", "é"],
}
EACH = pytest.mark.parametrize("parser", MARKS, ids=lambda parser: parser.name)


@pytest.mark.parametrize(("parser", "text", "failure"), [
    (TAG, "", "no_action"), (TAG, "<action>left", "unclosed_action"),
    (TAG, "</action> turn left <action>", "unclosed_action"),
    (TAG, "<action></action>", "empty_action"), (PLAN, "up; up", "no_action"),
    (PLAN, "<plan>up; up", "unclosed_action"), (PLAN, "<plan>1. ; 2) </plan>", "empty_action"),
    (JSON, "", "no_json"), (JSON, "{'action': 'left'}", "bad_json"),
    (JSON, '{"action": ' + "[" * 50_000, "bad_json"),  # deeper than the stack
    (JSON, '{"action": ' + "9" * 10_000 + "}", "bad_json"), (JSON, "{}", "no_action"),
    (JSON, "{broken {}", "no_action"), (JSON, '{"action": null}', "no_action"),
    (JSON, '{"action": true}', "no_action"), (JSON, '{"action": ["left"]}', "no_action"),
    (JSON, '{"action": " \\n"}', "empty_action"),
    (JSON, '{"x" ' * 32 + '{"action": "left"}', "bad_json"),  # too many braces
], ids=lambda value: getattr(value, "name", str(value)[:20]))  # fmt: skip
def test_each_failure_has_its_code(parser, text, failure):
    assert parser.parse(text) == Parsed(failure=failure)


LEGAL = ["left", "right", "up", "10", "2.5", "NaN", "左", "turn left"]


@pytest.mark.parametrize(("parser", "text", "actions"), [
    (TAG, "I think <action> turn left </action>, yes", "turn left"),
    (TAG, "<ACTION>Left</Action>", "Left"), (TAG, "<action><action>right</action>", "right"),
    (TAG, "<action></action> <action>left</action> <action></action>", "left"),
    (TAG, "<action>left</action> then <action>right", "left"),
    (TAG, "end with <action>ACTION</action>: <action>right</action> or <action>left</action>", "right"),
    (TAG, "<action>down</action> or <action>ACTION</action>", "ACTION"),
    (TAG, "<action> turn  LEFT </action> <action>right</action>", "turn  LEFT"),
    (PLAN, "<PLAN>\n1. up\n2) left\n- right\n* down\n</PLAN>", ("up", "left", "right", "down")),
    (PLAN, "<plan>up</plan> <plan>left", "up"), (PLAN, "<plan>3.5; 24</plan>", ("3.5", "24")),
    (PLAN, "<plan>ACTION; ACTION</plan> so <plan>up; jump</plan> <plan>left</plan>", ("up", "jump")),
    (PLAN, "<plan>ACTION; ACTION</plan> so <plan>jump; up</plan> <plan>down</plan>", "down"),
    (JSON, '```json\n{\n "action": " left "\n}\n```', "left"), (JSON, '{"action": 2.5}', "2.5"),
    (JSON, '{"action": "ACTION"} so: {"action": "up"} or {"action": "left"}', "up"),
    (JSON, '{"move": [{"action": "left"}]}', "left"), (JSON, '[{"action": "left"},]', "left"),
    (JSON, '{"action": "left"} {broken', "left"), (JSON, '{"Action": "left"}', "left"),
    (JSON, '{"action": "left", "action": "right"}', "right"), (JSON, '{"action": NaN}', "NaN"),
    (JSON, '{"thoughts": "a\nwall", "action": "left"}', "left"),
    (JSON, '{"thoughts": "a,}", "list": [1, ], "action": "left",\n }', "left"),
    (JSON, '{"Action": "left", "action": "right"}', "right"),
    (JSON, '{"action": "\\u5de6"}', "左"), (JSON, '{"x" ' * 31 + '{"action": "left"}', "left"),
], ids=lambda value: getattr(value, "name", str(value)[:20]))  # fmt: skip
def test_the_first_claim_with_a_legal_action_is_read_else_the_last(parser, text, actions):
    actions = (actions,) if isinstance(actions, str) else actions
    assert parser.parse(text, LEGAL).actions == actions
    if parser is TAG:
        assert parser.parse(text, None, lambda word: match_legal(word, LEGAL)).actions == actions


@EACH
@given(data=st.data())
def test_the_span_is_where_the_claim_stands(parser, data):
    text = "".join(data.draw(st.lists(st.sampled_from(MARKS[parser]), max_size=25)))
    parsed = parser.parse(text)
    if parsed.failure is not None:
        assert (parsed.actions, parsed.span) == ((), None)
        return
    start, end = parsed.span
    if parser is JSON:
        assert json.loads(text[start:end])["action"] == parsed.actions[0]
        return
    assert all(action in text[start:end] for action in parsed.actions)
    assert text[:start].lower().endswith(MARKS[parser][0])
    assert text[end:].lower().startswith(MARKS[parser][1])
    assert parser is PLAN or text[start:end].strip() == parsed.actions[0]


@EACH
@given(text=st.text(max_size=400))
def test_it_never_raises(parser, text):
    parsed = parser.parse(text, ["left"])
    assert (parsed.failure is None) == bool(parsed.actions)


def test_a_long_plan_is_cut_off():
    assert len(PLAN.parse(f"<plan>{'up;' * 5000}</plan>").actions) == MAX_ACTIONS


@given(st.text(max_size=40).map(str.strip).filter(bool), st.text(max_size=40), st.sampled_from(["", "<wall>?"]))
def test_what_is_formatted_is_read_back(action, any_thoughts, thoughts):
    assert JSON.parse(JSON.format([action], any_thoughts)).actions == (action,)
    assert PLAN.parse(PLAN.format(["up", "turn left"], thoughts)).actions == ("up", "turn left")
    if "action>" not in action.lower():
        text = TAG.format([action], thoughts)
        assert text.startswith(thoughts)
        assert TAG.parse(text).actions == (action,)
    assert TAG.format(["left", "right"]) == "<action>right</action>"

"""The parser `screen`: the forms of computer-use models, each read as one spelling."""

import pytest
from vlgym_screens.screen_parser import BareParser, ScreenParser

from vlgym.parsers import find_end, read_reply
from vlgym.testing import interface_checks

PARSER = ScreenParser()
FORMS = {
    "click(500, 300)": "click(500, 300)",
    "click [500, 300]": "click(500, 300)",
    "I press it. Click(500,300)": "click(500, 300)",
    "<action>click(500, 300)</action>": "click(500, 300)",
    "click((500, 300))": "click(500, 300)",
    "click(057, 006)": "click(57, 6)",
    "pyautogui.click(x=500, y=300)": "click(500, 300)",
    "pyautogui.click(500, 300, clicks=1, interval=0.1)": "click(500, 300)",
    "```python\npyautogui.leftClick(500, 300)\n```": "click(500, 300)",
    '{"action": "click", "coordinate": [500, 300]}': "click(500, 300)",
    '{"thoughts": "the star", "action": "click(500, 300)"}': "click(500, 300)",
    '<tool_call>{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [5, 3]}}</tool_call>': (
        "click(5, 3)"
    ),
    '<tool_call>{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [5, 3]}}': "click(5, 3)",
    '{"name": "computer", "arguments": "{\\"action\\": \\"left_click\\", \\"coordinate\\": [5, 3]}"}': "click(5, 3)",
    "Thought: the star.\nAction: click(start_box='<|box_start|>(5,3)<|box_end|>')": "click(5, 3)",
    "click(start_box='(5,3)')": "click(5, 3)",
    "click(point='<point>5 3</point>')": "click(5, 3)",
    "<seed:tool_call><function=click><parameter=point><point>5 3</point></parameter></function></seed:tool_call>": (
        "click(5, 3)"
    ),
    '{"type": "click", "x": 5, "y": 3, "button": "left"}': "click(5, 3)",
    '{"type": "computer_call", "action": {"type": "click", "x": 5, "y": 3}}': "click(5, 3)",
    '{"action_type": "click", "x": 5, "y": 3}': "click(5, 3)",
    '{"action": "click_absolute", "x": 5, "y": 3}': "click(5, 3)",
    "left_click(start_box='[5,3]', element_info='the 7th row')": "click(5, 3)",
    "CLICK(box=[[4,2,6,4]], element_info='x')": "click(5, 3)",
    "CLICK <point>[[5,3]]</point>": "click(5, 3)",
    'do(action="Tap", element=[5,3])': "click(5, 3)",
    "click_at(5, 3)": "click(5, 3)",
    "click 7": "click 7",
    "Click [7]": "click 7",
    "click(7).": "click 7",
    'type("two words")': 'type("two words")',
    "type(content='two words\\n')": 'type("two words")',
    "TYPE [two words]": 'type("two words")',
    '{"action": "type", "text": "two words"}': 'type("two words")',
    'type("a \\"b\\" (c)")': 'type("a \\"b\\" (c)")',
    "scroll(down)": "scroll(down)",
    "scroll(point='<point>5 3</point>', direction='up')": "scroll(up)",
    "pyautogui.scroll(-5)": "scroll(down)",
    '{"action": "scroll", "coordinate": [5, 3], "pixels": -300}': "scroll(down)",
    '{"type": "scroll", "x": 5, "y": 3, "scroll_x": 0, "scroll_y": 300}': "scroll(down)",
    '{"action": "scroll", "scroll_direction": "up", "scroll_amount": 3}': "scroll(up)",
    '{"action": "swipe", "coordinate": [5, 800], "coordinate2": [5, 200]}': "scroll(down)",
    "swipe(direction='up')": "scroll(down)",
    "press_back()": "back()",
    '{"action": "system_button", "button": "Back"}': "back()",
    "zoom(500, 300)": "zoom(500, 300)",
    '{"action": "zoom", "region": [400, 200, 600, 400]}': "zoom(500, 300)",
    '{"name": "image_zoom_in_tool", "arguments": {"bbox_2d": [400, 200, 600, 400], "label": "x"}}': "zoom(500, 300)",
    "zoom_out()": "zoom_out()",
    'answer("A7K2")': 'answer("A7K2")',
    "finished(content='A7K2')": 'answer("A7K2")',
    '{"action": "answer", "text": "A7K2"}': 'answer("A7K2")',
}


@pytest.mark.parametrize("reply", FORMS)
def test_a_models_form_is_read_as_one_spelling(reply: str) -> None:
    parsed = read_reply(PARSER, reply)
    assert (parsed.actions, parsed.failure) == ((FORMS[reply],), None)


@pytest.mark.parametrize("spelling", sorted(set(FORMS.values())))
def test_the_one_spelling_is_read_as_itself(spelling: str) -> None:
    assert read_reply(PARSER, PARSER.format([spelling], "I see it.")).actions == (spelling,)


@pytest.mark.parametrize(
    "reply", ["", "I would click the star.", "click()", "I click 5 stars.", '{"action": "click"}', "type()",
     "click(a, b)", '{"action": "system_button", "button": "Home"}', "doubleclicked(5, 3)",
     '{"action": ["click", 5, 3]}']
)  # fmt: skip
def test_what_names_no_place_and_no_words_is_no_action(reply: str) -> None:
    assert read_reply(PARSER, reply).failure == "no_action"


def test_the_first_legal_claim_counts_and_ends_the_reply() -> None:
    reply = 'Such as click(500, 300). So: {"action": "click", "coordinate": [1, 2]} or click(3, 4)'
    legal = ["click(1, 2)", "click(3, 4)"]
    assert read_reply(PARSER, reply, legal).actions == ("click(1, 2)",)
    end = find_end(PARSER, reply, legal)
    assert end is not None
    assert reply[:end].endswith("[1, 2]}")
    assert read_reply(PARSER, reply[:end], legal).actions == ("click(1, 2)",)


@pytest.mark.parametrize("piece", ["click(", "click('", "do(action='", "<function=click>", '{"', "back "])
def test_time_grows_no_faster_than_the_reply(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface_checks, "write_shapes", lambda *_: [("", piece, "")])
    assert interface_checks.find_slow_shape(PARSER) == ""


def test_a_thought_is_no_action() -> None:
    assert read_reply(PARSER, "<think>click(1, 2)?</think> click(3, 4)").actions == ("click(3, 4)",)


def test_the_bare_parser_asks_for_the_action_alone_and_reads_the_same() -> None:
    bare = BareParser()
    assert bare.format(["click 7"], "I see it") == "click 7"
    assert bare.format([]) == ""
    assert "Think" in PARSER.describe()
    assert "Think" not in bare.describe()
    assert all(bare.parse(form).actions == (action,) for form, action in FORMS.items())

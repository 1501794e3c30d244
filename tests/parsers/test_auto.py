"""The parser `auto` reads the habits of models, and refuses the nearest illegal replies."""

from contextlib import closing
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reply_forms import FORMS

import vlgym
from vlgym.env.seeding import episode_seed
from vlgym.parsers import find_end, get_parser, read_reply
from vlgym.types import Parsed

AUTO = get_parser("auto")
LEGAL = ["turn left", "turn right", "move forward", "pick up 1", "pick up 10"]


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_and_its_nearest_illegal_twin_is_refused(name: str) -> None:
    form, write = FORMS[name]
    for action in LEGAL if "cut off" not in name else LEGAL[:3] + LEGAL[4:]:
        text = write(action)
        parsed = read_reply(AUTO, text, LEGAL)
        assert (parsed.actions, parsed.failure, parsed.form) == ((action,), None, form)
        assert parsed.span is not None
        assert action in text[slice(*parsed.span)]
    for illegal in ("turn lef", "turn leftt", "pick up 2", "pick up 1 0", "turn left or turn right"):
        parsed = read_reply(AUTO, write(illegal), LEGAL)
        tagged = form == "tag" and "cut off" not in name
        assert parsed.failure == ("illegal_action" if tagged else "no_action"), illegal
        assert parsed.form is None


@pytest.mark.parametrize("name", FORMS)
def test_a_form_in_a_thought_is_not_read(name: str) -> None:
    write = FORMS[name][1]
    assert read_reply(AUTO, f"<think>{write('turn left')}", LEGAL).failure == "no_action"
    text = f"{write('turn left')}</think>{write('turn right')}"
    assert read_reply(AUTO, text, LEGAL).actions == ("turn right",)


@pytest.mark.parametrize(
    "name", [n for n in FORMS if FORMS[n][0] != "bare" and "cut off" not in n and "gpt-oss" not in n]
)
def test_two_different_legal_actions_of_one_form_are_ambiguous_except_of_tags(name: str) -> None:
    form, write = FORMS[name]
    twice, two = (f"{write('turn left')}\n{write(other)}" for other in ("turn left", "turn right"))
    assert read_reply(AUTO, twice, LEGAL).actions == ("turn left",)
    if form == "tag":
        assert read_reply(AUTO, two, LEGAL).actions == ("turn left",)
    else:
        assert read_reply(AUTO, two, LEGAL) == Parsed(failure="ambiguous")
    assert read_reply(AUTO, f"{write('ACTION')}\n{write('turn right')}", LEGAL).actions == ("turn right",)


def test_the_more_trusted_form_wins() -> None:
    first = dict(reversed(FORMS.values()))
    order = ["tag", "answer", "boxed", "box", "call", "line", "brackets", "bare"]
    assert set(order) == set(first)
    for high, low in pairwise(order):
        text = f"{first[low]('turn right')}\n{first[high]('turn left')}"
        text = text if low != "bare" else "[turn left]\nturn right"
        assert read_reply(AUTO, text, LEGAL).form == high, text
        text = f"{first[high]('fly')}\n{first[low]('turn right')}"
        assert read_reply(AUTO, text, LEGAL).form == low, text


@pytest.mark.parametrize(
    ("written", "meant"),
    [("Turn_Left()", "turn left"), ("TURN-LEFT", "turn left"), ("turn_left( )", "turn left"),
     ("ｔｕｒｎ　ｌｅｆｔ。", "turn left"), ("**`turn  left`**.", "turn left"), ("«turn left»", "turn left"),
     (r"turn\_left", "turn left"), ("pick_up_10", "pick up 10"), ("pick up 1.", "pick up 1"), ("pick up 1.0", None),
     ("pick up-1", None), ("pick up ²", None), ("pick up ①", None), ("turnleft", None), ("turn left!", None),
     ("turn left()()x", None)],
)  # fmt: skip
def test_what_is_folded(written: str, meant: str | None) -> None:
    parsed = read_reply(AUTO, f"<action>{written}</action>", LEGAL)
    assert parsed.actions == (meant or written,)
    assert parsed.failure == (None if meant else "illegal_action")


SIGNS = ["1", "2", "10", "+", "-", "*", "/", "(", ")", "="]


@pytest.mark.parametrize("sign", SIGNS)
def test_signs_and_numbers_are_read_in_every_form(sign: str) -> None:
    for name, (form, write) in FORMS.items():
        if name == "tag, closing mark cut off by the server" and sign == "1":
            assert read_reply(AUTO, write(sign), SIGNS).failure == "no_action"
            continue
        assert read_reply(AUTO, write(sign), SIGNS).actions == (sign,), name
        assert read_reply(AUTO, write(f"{sign}{sign}"), SIGNS).failure is not None, (name, form)
    assert read_reply(AUTO, "<action>−</action>", SIGNS).actions == ("-",)
    assert read_reply(AUTO, "<action>＋</action>", SIGNS).actions == ("+",)


def test_exact_beats_folded_and_folded_words_that_fit_two_are_ambiguous() -> None:
    legal = ["bxc3", "Bxc3", '"go"', "go", "a-b", "a b"]
    for action in legal:
        assert read_reply(AUTO, f"<action>{action}</action>", legal).actions == (action,)
    for doubtful in ("BXC3", "GO", "a_b"):
        assert read_reply(AUTO, f"<action>{doubtful}</action>", legal) == Parsed(failure="ambiguous")
        assert read_reply(AUTO, f"Action: {doubtful}", legal) == Parsed(failure="ambiguous")


def test_an_environment_s_own_match_decides() -> None:
    def match(wanted: str) -> str | None:
        inside = wanted.removeprefix("search[").removesuffix("]")
        return f"search[{inside.lower()}]" if wanted == f"search[{inside}]" and inside else None

    for name, (form, write) in FORMS.items():
        if "cut off" in name or name == "tag, fence":
            continue
        parsed = read_reply(AUTO, write("search[red mug]"), ["click[back]"], match)
        assert (parsed.actions, parsed.form) == (("search[red mug]",), form), name
        assert read_reply(AUTO, write("search[]"), ["click[back]"], match).failure is not None
    same = "Action: search[a]\nAction: search[A]"
    assert read_reply(AUTO, same, None, match).actions == ("search[a]",)
    assert read_reply(get_parser("tag"), "<action>x</action>", None, match).actions == ("x",)


def test_without_legal_actions_marked_forms_are_read_and_no_others() -> None:
    for name, (form, write) in FORMS.items():
        parsed = AUTO.parse(write("act"), None)
        assert (parsed.form == form) == (form not in ("brackets", "bare") and "cut off" not in name), name


def test_only_a_legal_action_ends_a_reply_early() -> None:
    text = "I write <action>ACTION</action>: <action>Turn_Left</action> then <action>turn right</action>"
    over = text[: find_end(AUTO, text, LEGAL)]
    assert over.endswith("<action>Turn_Left</action>")
    assert read_reply(AUTO, over, LEGAL).actions == read_reply(AUTO, text, LEGAL).actions == ("turn left",)
    assert find_end(AUTO, text, None, lambda _: None) is None
    assert find_end(AUTO, text) == find_end(get_parser("tag"), text)
    assert find_end(AUTO, "Action: turn left", LEGAL) is None


@given(st.text(max_size=40).map(str.strip).filter(bool), st.text(alphabet="ab<>/\n {}", max_size=40))
def test_what_it_formats_it_reads_back(action: str, thoughts: str) -> None:
    if "action>" not in action and "＞" not in action and "minimax" not in action:
        assert AUTO.parse(AUTO.format([action], thoughts), [action]).actions == (action,)
    assert (AUTO.format([action], thoughts), AUTO.describe()) == (
        get_parser("tag").format([action], thoughts),
        get_parser("tag").describe(),
    )


PIECES = [piece for _, write in FORMS.values() for piece in (write("turn left"), write("x"))]
PIECES += ["<action>", "</action>", '{"action":', "\\boxed{", "<think>", "</think>", "Action:", "\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
def test_any_mixture_is_a_legal_action_or_a_failure(text: str) -> None:
    read = read_reply(AUTO, text, LEGAL)
    assert (read.failure is None) == (read.form is not None)
    assert read.failure or read.actions[0] in LEGAL


HOSTILE = ["arg_key>action=", 'argument key="action"', "f(action='", "call:a{action:", ",'action':'", "<param=action>",
           "</a>", "<tool: f>act ", "[[a]", "\\boxed{{x}", "Action: \n", ","]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_many_pieces_do_not_hang(piece: str) -> None:
    """A rule whose work grew with the square of the length would hang here."""
    AUTO.parse(piece * 10_000, LEGAL)  # no limit cuts it


MORE = ("WebShop-v1", "EZPoints-v1", "ALFWorldPick-v1", "SokobanDrawn-v0", "OneRoomS6Fast-v1", "BabyAIGoTo-v0")
UNSURE = ("ALFWorldPick-v1", "WebShop-v1")  # a cut action may go on: `search[red``
PLAYED = [pytest.param(env_id, [*FORMS], marks=pytest.mark.exhaustive) for env_id in MORE]


@pytest.mark.parametrize(("env_id", "names"), [("NumberLine-v1", ["tag", "last line, full stop"]), *PLAYED])
def test_who_knows_the_action_wins_in_every_form(env_id: str, names: list[str]) -> None:
    with closing(vlgym.make(f"vlgym/{env_id}", parser="auto")) as env:
        for name in names if env_id not in UNSURE else [name for name in names if "cut off" not in name]:
            form, write = FORMS[name]
            ended, info = False, env.reset(seed=episode_seed(f"vlgym/{env_id}", "test", 0))[1]
            while not ended:
                _, _, terminated, truncated, info = env.step(write(env.unwrapped.oracle()))
                assert (info["vlgym"]["parse"], info["vlgym"]["form"]) == ("ok", form), name
                ended = terminated or truncated
            assert info["success"], name

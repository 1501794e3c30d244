"""compat="rl4vlm": each published quirk, and the published reply parser."""

import json
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from vlgym_cards.cards import Card
from vlgym_cards.rl4vlm import FormulaParser, NumberLineParser, ProjectionParser
from vlgym_cards.solver import is_solvable

from vlgym.env import VLEnv
from vlgym.errors import UserError

Build = Callable[..., VLEnv]
NUMBERS = [*map(str, range(1, 11)), "+", "-", "*", "/", "(", ")", "="]


# ---- the parser ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "legal", "action"),
    [
        ('{"thoughts": "up", "action": "+"}', ["-", "+"], "+"),
        ('{"action": "stand"}', ["stand", "hit"], "stand"),
        ('{"ACTION": "HIT"}', ["stand", "hit"], "hit"),
        ('{"action": "10"}', NUMBERS, "10"),
        ('{"action": "1"}', NUMBERS, "1"),
        ("whatever +", ["-", "+"], "+"),  # without a marker, the last character counts
        ('"action": 7 "', NUMBERS, "7"),
    ],
)
def test_one_legal_action_after_the_marker_is_read(text: str, legal: list[str], action: str) -> None:
    assert ProjectionParser().parse(text, legal).actions == (action,)


@pytest.mark.parametrize(
    ("text", "legal", "failure"),
    [
        ("", ["-", "+"], "no_action"),
        ('{"action": "walk"}', ["stand", "hit"], "no_action"),
        ('{"action": "stand or hit"}', ["stand", "hit"], "ambiguous_action"),
        ('{"action": "11"}', [*NUMBERS, "11"], "ambiguous_action"),  # "1" is in "11"
        ('{"action": "10 + 1"}', NUMBERS, "ambiguous_action"),
        ('{"action": "hit"} ... "action": "stand"', ["stand", "hit"], "ambiguous_action"),  # the first marker counts
        ("I choose stand", ["stand", "hit"], "no_action"),  # no marker: only the last character is kept
    ],
)
def test_no_action_or_several_are_a_failure(text: str, legal: list[str], failure: str) -> None:
    parsed = ProjectionParser().parse(text, legal)
    assert parsed.actions == ()
    assert parsed.failure == failure


@pytest.mark.parametrize(
    "parser", [ProjectionParser(), NumberLineParser(), FormulaParser()], ids=lambda each: each.name
)
@pytest.mark.parametrize("legal", [["-", "+"], ["stand", "hit"], NUMBERS])
def test_every_action_round_trips_whatever_the_thoughts(legal: list[str], parser: ProjectionParser) -> None:
    for action in legal:
        for thoughts in ("", 'the "action": is clear, 10 + 2', "\n{}", '{"thoughts": "the \\"action\\": 3"}', "[1]"):
            assert parser.parse(parser.format([action], thoughts), legal).actions == (action,)


def test_compat_sets_parser_and_random_fallback_unless_told_otherwise(make_env: Build) -> None:
    for title in ("NumberLine", "EZPoints", "Points24", "Blackjack"):
        env = make_env(title, compat="rl4vlm")
        assert isinstance(env.parser, ProjectionParser)
        assert env.invalid_action == "random"
        kept = make_env(title, compat="rl4vlm", parser="tag", invalid_action="noop")
        assert (kept.parser.name, kept.invalid_action) == ("tag", "noop")


@pytest.mark.parametrize(
    ("title", "options", "reply"),
    [
        (
            "NumberLine",
            {"current": 1, "target": 3},
            {"current number": 1, "target number": 3, "thoughts": "target 3 current 1", "action": "+"},
        ),
        (
            "EZPoints",
            {"cards": ["HK", "S2"]},
            {
                "cards": ["K", "2"],
                "current formula": "",
                "thoughts": "formula (empty); it is incomplete; 2 + 10 = 12; next 2",
                "action": "2",
            },
        ),
        (
            "Points24",
            {"cards": ["H6", "S6", "D6", "C6"]},
            {
                "cards": ["6", "6", "6", "6"],
                "current formula": "",
                "thoughts": "formula (empty); it is incomplete; 6 + 6 + 6 + 6 = 24; next 6",
                "action": "6",
            },
        ),
        (
            "Blackjack",
            {"player": ["HK", "SQ"], "dealer": ["D6", "S9"]},
            {"thoughts": "player 20 dealer 6; stand", "action": "stand"},
        ),
    ],
)
def test_the_reply_has_the_games_own_keys_in_the_published_order_and_is_read_back(
    make_env: Build, title: str, options: dict[str, Any], reply: dict[str, Any]
) -> None:
    env = make_env(title, compat="rl4vlm")
    observation, _ = env.reset(seed=0, options=options)
    text = env.solve()
    assert json.loads(text) == reply
    assert list(json.loads(text)) == list(reply)
    places = [observation["text"].index(f'"{key}": ') for key in reply]
    assert places == sorted(places), "the prompt shows the keys in their order"
    parsed = env.parser.parse(text, env.legal_actions())
    assert parsed.actions == (reply["action"],)
    assert text[slice(*parsed.span)].startswith('"action":'), "all other keys are thoughts"


def test_with_another_reply_format_the_oracle_thinks_as_usual(make_env: Build) -> None:
    env = make_env("NumberLine", compat="rl4vlm", parser="tag")
    env.reset(seed=0, options={"current": 1, "target": 3})
    assert env.solve() == "target 3 current 1 <action>+</action>"


def test_an_unreadable_reply_executes_a_random_legal_action_and_is_counted(make_env: Build) -> None:
    env = make_env("NumberLine", compat="rl4vlm")
    executed = []
    for seed in range(60):
        env.reset(seed=seed)
        *_, info = env.step("no idea")
        assert info["invalid_action"]
        executed += info["vlgym"]["actions"]
    assert 15 <= executed.count("+") <= 45
    assert len(executed) == 60


@pytest.mark.parametrize("title", ["NumberLine", "EZPoints", "Points24", "Blackjack"])
def test_an_unknown_compat_is_named(make_env: Build, title: str) -> None:
    with pytest.raises(UserError, match="rl4vlm"):
        make_env(title, compat="rl4vm")


# ---- the formula games ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cards", "formula"),
    [
        (["HA", "S2", "D2", "CA"], "1 2 * 2 * 1"),  # digits join: 12 * 2 * 1
        (["H2", "S3", "D3", "CA"], "2 * * 3 * 3 * 1"),  # power
        (["H7", "S2", "D8", "CA"], "7 / / 2 * 8 * 1"),  # floor division
        (["H3", "S9", "D9", "C9"], "- 3 + 9 + 9 + 9"),  # sign
    ],
)
def test_the_published_language_wins_where_the_exact_grammar_loses(
    make_env: Build, play: Callable, cards: list[str], formula: str
) -> None:
    published = make_env("Points24", compat="rl4vlm")
    published.reset(seed=0, options={"cards": cards})
    rewards, _, _, info = play(published, [*formula.split(), "="])
    assert rewards[-1] == 10
    assert info["success"]
    exact = make_env("Points24")
    exact.reset(seed=0, options={"cards": cards})
    assert play(exact, [*formula.split(), "="])[0][-1] == -1


def test_three_three_eight_eight_fails_in_floating_point_numbers(make_env: Build, play: Callable) -> None:
    env = make_env("Points24", compat="rl4vlm")
    env.reset(seed=0, options={"cards": ["H3", "S3", "D8", "C8"]})
    assert play(env, ["8", "/", "(", "3", "-", "8", "/", "3", ")", "="])[0][-1] == -1
    env.reset(seed=0, options={"cards": ["H3", "S3", "D8", "C8"]})
    assert env.oracle() == "="


def test_the_oracle_loses_only_three_three_eight_eight(make_env: Build) -> None:
    env: Any = make_env("Points24", compat="rl4vlm")
    missed = []
    for hand in combinations_with_replacement(range(1, 11), 4):
        if is_solvable(hand, 24):
            env.start(np.random.default_rng(0), {"cards": tuple(Card(n, "S") for n in hand)})
            outcome = env.act(env.oracle())
            while not (outcome.terminated or outcome.truncated):
                outcome = env.act(env.oracle())
            if outcome.reward != 10:
                missed.append(hand)
    assert missed == [(3, 3, 8, 8)]


def test_a_refused_number_leaves_a_blank_in_the_formula(make_env: Build, play: Callable) -> None:
    env = make_env("EZPoints", compat="rl4vlm")
    env.reset(seed=0, options={"cards": ["H5", "S7"]})
    rewards, _, _, info = play(env, ["5", "9", "+"])
    assert rewards == [0, -1, 0]
    assert info["formula"] == ["5", " ", "+"]
    rewards, _, _, info = play(env, ["7", "="])
    assert rewards == [0, 10], "the blank does not break 5 + 7"
    assert info["return_positive"]


def test_a_blank_between_digits_or_stars_breaks_the_formula(make_env: Build, play: Callable) -> None:
    env = make_env("Points24", compat="rl4vlm")
    cards = {"cards": ["HA", "S2", "D2", "CA"]}
    env.reset(seed=0, options=cards)
    assert play(env, ["1", "9", "2", "*", "2", "*", "1", "="])[0] == [0, -1, 0, 0, 0, 0, 0, -1]
    env.reset(seed=0, options={"cards": ["H2", "S3", "D3", "CA"]})
    assert play(env, ["2", "*", "9", "*", "3", "*", "3", "*", "1", "="])[0][-1] == -1


@pytest.mark.parametrize(("title", "length"), [("EZPoints", 6), ("Points24", 21)])
def test_any_token_after_a_full_formula_comes_too_late_even_equals(
    make_env: Build, play: Callable, title: str, length: int
) -> None:
    env = make_env(title, compat="rl4vlm")
    env.reset(seed=0)
    rewards, terminated, truncated, info = play(env, ["+"] * length + ["="])
    assert rewards == [0] * length + [-1]
    assert truncated
    assert not terminated
    assert len(info["formula"]) == length


@pytest.mark.parametrize(("title", "top"), [("EZPoints", 258), ("Points24", 210)])
def test_the_published_layout_writes_the_formula_in_its_place(make_env: Build, title: str, top: int) -> None:
    env = make_env(title, compat="rl4vlm")
    white = (env.reset(seed=0)[0]["image"] > 240).all(axis=2)
    rows, columns = np.nonzero(white[top - 8 :])
    assert 8 <= rows.min() <= 8 + 8
    assert 10 <= columns.min() <= 14


def test_a_long_formula_runs_off_the_published_picture(make_env: Build) -> None:
    env: Any = make_env("Points24", compat="rl4vlm")
    env.reset(seed=0)
    env.formula = ["10", "+"] * 9
    image = env.image()
    env.formula = ["10", "+"] * 10
    assert (env.image() == image).all()


# ---- Blackjack and NumberLine --------------------------------------------------------------------------------------


def test_ten_valued_cards_are_always_faces(make_env: Build) -> None:
    env: Any = make_env("Blackjack", compat="rl4vlm")
    rng = np.random.default_rng(0)
    drawn = [env._draw(rng) for _ in range(13_000)]
    assert not any(card.rank == 10 for card in drawn)
    faces = [sum(card.rank == rank for card in drawn) for rank in (11, 12, 13)]
    assert all(count == pytest.approx(4000 / 3, abs=150) for count in faces)


def test_the_fifth_card_lies_off_the_canvas_and_the_sixth_is_partly_seen(make_env: Build) -> None:
    env: Any = make_env("Blackjack", compat="rl4vlm")
    hand = ["C2", "D2", "H3", "SA", "CA", "DA"]
    env.reset(seed=0, options={"player": hand, "dealer": ["H7", "SK"]})
    base = env.image()
    seen = []
    for place in range(6):
        kept = env.player[place]
        env.player[place] = Card(9, kept.suit)
        seen.append(bool((env.image() != base).any()))
        env.player[place] = kept
    assert seen == [True, True, True, True, False, True]
    assert (base[252:300, 5:75] == 255).all(axis=2).mean() > 0.5


def test_the_dealers_second_card_stays_face_down_after_the_game(make_env: Build, play: Callable) -> None:
    env = make_env("Blackjack", compat="rl4vlm")
    before = env.reset(seed=0, options={"player": ["HK", "SK"], "dealer": ["D9", "C10"]})[0]["image"]
    play(env, ["stand"])
    assert (env.image() == before).all()


def test_number_line_has_the_published_picture(make_env: Build) -> None:
    env = make_env("NumberLine", compat="rl4vlm")
    ink = env.reset(seed=0, options={"current": 1, "target": 3})[0]["image"].min(axis=2) < 128
    rows = np.nonzero(ink.any(axis=1))[0]
    assert 60 <= rows.min() <= 75
    assert rows.max() <= 180 + 46
    assert not ink[115:180].any()
    assert 30 <= np.nonzero(ink.any(axis=0))[0].min() <= 35


def test_prompts_describe_the_new_episode_since_the_stale_prompt_is_not_reproduced(
    make_env: Build, play: Callable
) -> None:
    env = make_env("EZPoints", compat="rl4vlm")
    env.reset(seed=0)
    play(env, ["+", "+"])
    observation, info = env.reset(seed=1)
    assert info["formula"] == []
    assert "(empty)" in observation["text"]
    assert info["vlgym"]["turn_text"] in observation["text"]


@pytest.mark.parametrize("title", ["NumberLine", "EZPoints", "Points24", "Blackjack"])
def test_the_same_seed_gives_the_same_episode_in_compat_too(make_env: Build, title: str) -> None:
    first, second = make_env(title, compat="rl4vlm"), make_env(title, compat="rl4vlm")
    for seed in range(5):
        a, b = first.reset(seed=seed), second.reset(seed=seed)
        assert a[0]["text"] == b[0]["text"]
        assert (a[0]["image"] == b[0]["image"]).all()
        for _ in range(3):
            a, b = first.step("?"), second.step("?")
            assert a[1:] == b[1:]
            if a[2] or a[3]:
                break

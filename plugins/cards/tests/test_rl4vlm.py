"""compat="rl4vlm": each published quirk, and the published reply parser."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from vlgym_cards.cards import Card
from vlgym_cards.rl4vlm import FormulaParser, NumberLineParser, ProjectionParser

from vlgym.env import VLEnv

Build = Callable[..., VLEnv]
HAND = {"cards": ["H5", "S7"]}
NUMBERS = [*map(str, range(1, 11)), "+", "-", "*", "/", "(", ")", "="]


@pytest.mark.parametrize(
    ("text", "legal", "read"),
    [
        ('{"thoughts": "up", "action": "+"}', ["-", "+"], "+"),
        ('{"ACTION": "HIT"}', ["stand", "hit"], "hit"),
        ('{"action": "10"}', NUMBERS, "10"),
        ("whatever +", ["-", "+"], "+"),  # without a marker, the last character counts
        ('"action": 7 "', NUMBERS, "7"),
        ("", ["-", "+"], "no_action"),
        ('{"action": "walk"}', ["stand", "hit"], "no_action"),
        ('{"action": "stand or hit"}', ["stand", "hit"], "ambiguous_action"),
        ('{"action": "11"}', [*NUMBERS, "11"], "ambiguous_action"),  # "1" is in "11"
        ('{"action": "hit"} ... "action": "stand"', ["stand", "hit"], "ambiguous_action"),  # the first marker counts
        ("I choose stand", ["stand", "hit"], "no_action"),
    ],
)
def test_one_legal_action_after_the_marker_is_read(text: str, legal: list[str], read: str) -> None:
    parsed = ProjectionParser().parse(text, legal)
    assert (parsed.actions, parsed.failure) == (((read,), None) if read in legal else ((), read))


@pytest.mark.parametrize("thoughts", ["", 'the "action": is clear', "\n{}", '{"thoughts": "\\"action\\": 3"}', "[1]"])
def test_every_action_round_trips_whatever_the_thoughts(thoughts: str) -> None:
    for parser in (ProjectionParser(), NumberLineParser(), FormulaParser()):
        for legal in (["-", "+"], ["stand", "hit"], NUMBERS):
            for action in legal:
                reply = parser.format([action], thoughts)
                assert parser.parse(reply, legal).actions == (action,)


def test_compat_sets_parser_and_random_fallback_unless_told_otherwise(make_env: Build) -> None:
    for title in ("NumberLine", "EZPoints", "Points24", "Blackjack"):
        env = make_env(title, compat="rl4vlm", parser=None)
        assert isinstance(env.parser, ProjectionParser)
        assert env.invalid_action == "published"
        assert make_env(title).invalid_action == "random"
        own = make_env(title, compat="rl4vlm", parser="tag", invalid_action="noop")
        assert (own.parser.name, own.invalid_action) == ("tag", "noop")


def test_the_published_texts_have_no_line_on_a_reply_without_an_action(make_env: Build) -> None:
    for arguments in ({}, {"invalid_action": "noop"}):
        env = make_env("EZPoints", {}, compat="rl4vlm", **arguments)
        assert env.step("?")[4]["vlgym"]["turn_text"].startswith("Formula so far:")


def test_the_reply_has_the_games_own_keys_in_the_published_order(make_env: Build) -> None:
    env = make_env("Points24", compat="rl4vlm")
    observation, _ = env.reset(seed=0, options={"cards": ["H6", "S6", "D6", "C6"]})
    text = env.solve()
    thoughts = "formula (empty); it is incomplete; 6 + 6 + 6 + 6 = 24; next 6"
    reply = {"cards": ["6"] * 4, "current formula": "", "thoughts": thoughts, "action": "6"}
    assert list(json.loads(text).items()) == list(reply.items())
    places = [observation["text"].index(f'"{key}": ') for key in reply]
    assert places == sorted(places), "the prompt shows the keys in their order"
    parsed = env.parser.parse(text, env.legal_actions())
    assert parsed.actions == ("6",)
    assert text[slice(*parsed.span)].startswith('"action":'), "all other keys are thoughts"


@pytest.mark.parametrize(
    ("cards", "formula"),
    [
        (["HA", "S2", "D2", "CA"], "1 2 * 2 * 1"),  # digits join: 12 * 2 * 1
        (["H2", "S3", "D3", "CA"], "2 * * 3 * 3 * 1"),  # power
        (["H7", "S2", "D8", "CA"], "7 / / 2 * 8 * 1"),  # floor division
        (["H3", "S9", "D9", "C9"], "- 3 + 9 + 9 + 9"),  # sign
    ],
)
def test_the_published_language_wins_where_the_exact_grammar_loses(make_env, play, cards, formula):
    for compat, reward in (("rl4vlm", 10), (None, -1)):
        env = make_env("Points24", {"cards": cards}, compat=compat)
        rewards, _, _, info = play(env, [*formula.split(), "="])
        assert (rewards[-1], info["success"]) == (reward, reward > 0)


def test_a_refused_number_leaves_a_blank_in_the_formula(make_env: Build, play: Callable) -> None:
    env = make_env("EZPoints", HAND, compat="rl4vlm")
    rewards, _, _, info = play(env, ["5", "9", "+"])
    assert (rewards, info["formula"]) == ([0, -1, 0], ["5", " ", "+"])
    rewards, _, _, info = play(env, ["7", "="])
    assert rewards == [0, 10], "the blank does not break 5 + 7"
    assert info["return_positive"]


def test_the_oracle_wins_after_refusals_while_there_is_room_for_the_end(make_env: Build, play: Callable) -> None:
    for refusals, action in ((2, "5"), (3, "=")):
        env: Any = make_env("EZPoints", HAND, compat="rl4vlm")
        play(env, ["9"] * refusals)
        assert env.oracle() == action
    eights = {"cards": ["H3", "S3", "D8", "C8"]}
    assert [make_env("Points24", eights, compat=compat).oracle() for compat in ("rl4vlm", None)] == ["=", "8"]


@pytest.mark.parametrize(("title", "length"), [("EZPoints", 6), ("Points24", 21)])
def test_any_token_after_a_full_formula_comes_too_late_even_equals(make_env, play, title, length):
    env = make_env(title, {}, compat="rl4vlm")
    rewards, *ended, info = play(env, ["+"] * length + ["="])
    assert (rewards, ended) == ([0] * length + [-1], [False, True])
    assert len(info["formula"]) == length


def test_ten_valued_cards_are_always_faces(make_env: Build) -> None:
    env: Any = make_env("Blackjack", compat="rl4vlm")
    rng = np.random.default_rng(0)
    drawn = [env._draw(rng) for _ in range(13_000)]
    assert not any(card.rank == 10 for card in drawn)
    faces = [sum(card.rank == rank for card in drawn) for rank in (11, 12, 13)]
    assert all(count == pytest.approx(4000 / 3, abs=150) for count in faces)


def test_the_fifth_card_lies_off_the_canvas_and_the_sixth_is_partly_seen(make_env: Build) -> None:
    start = {"player": ["C2", "D2", "H3", "SA", "CA", "DA"], "dealer": ["H7", "SK"]}
    env: Any = make_env("Blackjack", start, compat="rl4vlm")
    base = env.image()
    shown = []
    for place in range(6):
        card = env.player[place]
        env.player[place] = Card(9, card.suit)
        shown.append(bool((env.image() != base).any()))
        env.player[place] = card
    assert shown == [True, True, True, True, False, True]
    assert (base[252:300, 5:75] == 255).all(axis=2).mean() > 0.5


def test_the_dealers_second_card_stays_face_down(make_env: Build, play: Callable) -> None:
    env = make_env("Blackjack", {"player": ["HK", "SK"], "dealer": ["D9", "C10"]}, compat="rl4vlm")
    before = env.image()
    play(env, ["stand"])
    assert (env.image() == before).all()


def test_an_unreadable_reply_executes_a_random_legal_action_that_the_seed_decides(make_env):
    env = make_env("NumberLine", compat="rl4vlm")
    executed = []
    for seed in [*range(30)] * 2:
        env.reset(seed=seed)
        *_, info = env.step("no idea")
        assert info["invalid_action"]
        executed += info["vlgym"]["actions"]
    assert executed[:30] == executed[30:]
    assert 5 <= executed[:30].count("+") <= 25

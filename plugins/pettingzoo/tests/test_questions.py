"""Questions about a position: the prediction of moves, the names of elements, and their suite."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from vlgym_pettingzoo.plugin import AGAINST, COINS, NAME_ELEMENT, NEXT_MOVE, TOGETHER, VS_BENCH
from vlgym_pettingzoo.questions import ASKED

import vlgym
from vlgym.evaluation.plan import plan_ids, plan_suite
from vlgym.evaluation.run import run_evaluation
from vlgym.play.policies import OraclePolicy, RandomPolicy
from vlgym.reports.compute import compute_report
from vlgym.reports.writing import REPORT, write_report

FEW = ("vlgym/Hanabi-v0", "vlgym/KuhnPoker-v0", "vlgym/KitchenPair-v0", "vlgym/MPETag-v0")
GAMES = [pytest.param(game, marks=() if game in FEW else pytest.mark.exhaustive) for game in ASKED]


@pytest.mark.parametrize("game", GAMES)
def test_the_right_answer_is_the_strong_players_move_and_the_picture_is_the_other_seats(game: str):
    env = vlgym.make(NEXT_MOVE.id, game=game, image_size=(64, 64))
    questions = set()
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        table, (me, other) = env._table, env._seats
        assert me != other in table.movers
        assert np.array_equal(observation["image"], table.game.draw(me))
        right = table.game.advise(other)
        legal = env.legal_actions()
        assert right in legal
        assert right in env._right <= {*legal}
        wrong = next((action for action in legal if action not in env._right), None)
        state = env.get_state()
        assert env.step(f"<action>{right}</action>")[1:3] == (1.0, True)
        env.set_state(state)
        questions.add((observation["image"].tobytes(), other))
        if wrong is None:  # a card with which the table takes either action
            continue
        _, reward, terminated, _, info = env.step(f"<action>{wrong}</action>")
        assert (reward, terminated, info["success"], info["answer"]) == (0.0, True, False, right)
    assert len(questions) >= 2


def test_the_moves_that_are_offered_in_hanabi_tell_nothing_of_the_own_cards():
    env = vlgym.make(NEXT_MOVE.id, game="vlgym/Hanabi-v0")
    lists = set()
    for seed in range(12):
        env.reset(seed=seed)
        lists.add(tuple(env.legal_actions()))
        assert set(env._table.game.moves(env._seats[1])) <= set(env.legal_actions())
    assert len(lists) == 1


def test_the_suite_plays_the_papers_numbers_of_episodes_and_asks_about_every_game():
    parts, missing = plan_suite("vs-bench")
    every = [{"game": spec.id} for spec in VS_BENCH]
    assert missing == []
    assert {game["game"] for game in every} == {*TOGETHER, *(spec.id for spec in AGAINST)} == ASKED.keys()
    items = {part.env_id: (*part.items,) for part in parts}
    assert [*items[NEXT_MOVE.id]] == [*items[NAME_ELEMENT.id]] == every
    episodes = {part.env_id: part.episodes for part in parts if items[part.env_id] == ({"opponents": "self"},)}
    assert episodes == dict.fromkeys(TOGETHER, 10)
    assert all(
        part.episodes == 20 and not part.changed for part in parts if part.env_id in {each.id for each in AGAINST}
    )


@pytest.mark.parametrize(("policy", "place"), [
    pytest.param(RandomPolicy(), 0.0, marks=pytest.mark.exhaustive), (OraclePolicy(), 1.0),
])  # fmt: skip
def test_a_model_that_holds_all_seats_is_placed_between_random_play_and_the_oracle(policy, place, tmp_path):
    (part,) = (part for part in plan_suite("vs-bench")[0] if part.env_id == COINS.id)
    run_evaluation([part], policy, tmp_path / "run")
    write_report(tmp_path / "run")
    (row,) = json.loads((tmp_path / "run" / REPORT).read_text(encoding="utf-8"))["parts"].values()
    assert row["floor"] == {"return": TOGETHER[COINS.id][0]}
    assert row["normalized"]["mean"] == pytest.approx(place, abs=0.25)


@pytest.mark.parametrize(("arguments", "placed"), [({}, True), ({"max_turns": 3}, False)])
def test_the_same_setting_outside_the_suite_has_the_suites_bounds_and_another_has_none(arguments, placed, tmp_path):
    parts = plan_ids([COINS.id], episodes=2, arguments={"opponents": "self", **arguments})
    run_evaluation(parts, RandomPolicy(), tmp_path / "run")
    (row,) = compute_report(tmp_path / "run")["parts"].values()
    assert ("normalized" in row, "floor" in row) == (placed, placed)


def test_every_move_of_a_player_who_chooses_among_equals_is_right():
    env = vlgym.make(NEXT_MOVE.id, game="vlgym/CoinGame-v0")
    several = 0
    for seed in range(30):
        env.reset(seed=seed)
        game, other = env._table.game, env._seats[1]
        (row, column), (to_row, to_column) = game.places[other], game.coin
        if game.drawn != game.colour_of(other):
            assert env._right == {"stay"}
        elif row != to_row and column != to_column:
            assert env._right == {"down" if to_row > row else "up", "right" if to_column > column else "left"}
            several += 1
    assert several


@pytest.mark.parametrize("game", ["CoinGame", "BattleOfTheColors", "MonsterHunt"])
def test_the_answer_lies_where_the_question_says(game: str) -> None:
    env = vlgym.make(NAME_ELEMENT.id, game=f"vlgym/{game}-v0", image_size=(64, 64))
    answers = set()
    for seed in range(30):
        env.reset(seed=seed)
        rules, me = env._table.game, env._seats[0]
        row, column = (int(word) - 1 for word in re.findall(r"\d+", env._question))
        things = {"you": [rules.places[me]], "the other": [rules.places[1 - me]]}
        if game == "CoinGame":
            things[f"{('red', 'blue')[rules.drawn]} coin"] = [rules.coin]
        elif game == "MonsterHunt":
            things |= {"apple": rules.apples, "monster": [rules.monster]}
        else:
            things |= {"red block": [rules.blocks[0]], "blue block": [rules.blocks[1]]}
        here = [name for name, cells in things.items() if (row, column) in cells]
        assert (here or ["nothing"]) == [env.solve().split("<action>")[1].removesuffix("</action>")]
        answers.add(env._answer)
    assert len(answers) == 5


@pytest.mark.parametrize("game", GAMES)
def test_a_question_has_one_right_answer_and_the_picture_is_the_games(game: str) -> None:
    env, answers = vlgym.make(NAME_ELEMENT.id, game=game, image_size=(96, 96)), ASKED[game][0]
    for seed in range(2):
        observation, _ = env.reset(seed=seed)
        assert np.array_equal(observation["image"], env._table.game.draw(env._seats[0]))
        assert env._question in observation["text"]
        assert env.legal_actions() == list(answers)
        state, right = env.get_state(), env._answer
        for answer in answers:
            env.set_state(state)
            _, reward, terminated, _, info = env.step(f"<action>{answer}</action>")
            assert (reward, terminated, info["success"]) == (float(answer == right), True, answer == right)


@pytest.mark.parametrize("game", ["vlgym/CoinGame-v0", pytest.param("vlgym/Hanabi-v0", marks=pytest.mark.exhaustive)])
def test_no_answer_is_much_more_frequent_than_another(game: str) -> None:
    env, answers = vlgym.make(NAME_ELEMENT.id, game=game, image_size=(64, 64)), Counter[str]()
    for seed in range(40):
        env.reset(seed=seed)
        answers[env._answer] += 1
    assert len(answers) == len(ASKED[game][0])
    assert max(answers.values()) < 40 * 1.8 / len(answers)

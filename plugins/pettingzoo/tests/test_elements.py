"""The questions about elements of pictures."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from vlgym_pettingzoo.plugin import NAME_ELEMENT, VS_BENCH
from vlgym_pettingzoo.questions.elements import ASKED

import vlgym


def test_every_game_of_the_suite_is_asked_about() -> None:
    assert {spec.id for spec in VS_BENCH} == ASKED.keys()


@pytest.mark.parametrize("game", ["vlgym/CoinGame-v0", "vlgym/BattleOfTheColors-v0", "vlgym/MonsterHunt-v0"])
def test_the_answer_lies_where_the_question_says(game: str) -> None:
    env = vlgym.make(NAME_ELEMENT.id, game=game, image_size=(64, 64))
    answers = set()
    for seed in range(30):
        env.reset(seed=seed)
        rules, me = env._table.game, env._seats[0]
        row, column = (int(word) - 1 for word in re.findall(r"\d+", env._question))
        things = {"you": [rules.places[me]], "the other": [rules.places[1 - me]]}
        if game == "vlgym/CoinGame-v0":
            things[f"{('red', 'blue')[rules.drawn]} coin"] = [rules.coin]
        elif game == "vlgym/MonsterHunt-v0":
            things |= {"apple": rules.apples, "monster": [rules.monster]}
        else:
            things |= {"red block": [rules.blocks[0]], "blue block": [rules.blocks[1]]}
        here = [name for name, cells in things.items() if (row, column) in cells]
        assert (here or ["nothing"]) == [env.solve().split("<action>")[1].removesuffix("</action>")]
        answers.add(env._answer)
    assert len(answers) == 5


@pytest.mark.parametrize("game", ASKED)
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


MORE = [pytest.param(f"vlgym/{name}-v0", marks=pytest.mark.exhaustive) for name in ("Hanabi", "KuhnPoker", "MPETag")]


@pytest.mark.parametrize("game", ["vlgym/CoinGame-v0", *MORE])
def test_no_answer_is_much_more_frequent_than_another(game: str) -> None:
    env, answers = vlgym.make(NAME_ELEMENT.id, game=game, image_size=(64, 64)), Counter[str]()
    for seed in range(60):
        env.reset(seed=seed)
        answers[env._answer] += 1
    assert len(answers) == len(ASKED[game][0])
    assert max(answers.values()) < 60 * 1.7 / len(answers)

"""The prediction of moves, and the suite that asks for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from vlgym_pettingzoo.plugin import NEXT_MOVE, VS_BENCH

import vlgym
from vlgym.evaluation.plan import plan_suite


@pytest.mark.parametrize("spec", VS_BENCH, ids=lambda spec: spec.title)
def test_the_right_answer_is_the_move_of_the_strong_player_and_the_picture_is_the_other_seats(spec):
    env = vlgym.make(NEXT_MOVE.id, game=spec.id)
    asked = set()
    for seed in range(4):
        observation, info = env.reset(seed=seed)
        table, (me, other) = env._table, env._seats
        assert me != other
        assert other in table.movers
        assert np.array_equal(observation["image"], table.game.draw(me))
        right = table.game.advise(other)
        legal = env.legal_actions()
        assert right in legal
        wrong = next(action for action in legal if action != right)
        state = env.get_state()
        assert env.step(f"<action>{right}</action>")[1:3] == (1.0, True)
        env.set_state(state)
        _, reward, terminated, _, info = env.step(f"<action>{wrong}</action>")
        assert (reward, terminated, info["success"], info["answer"]) == (0.0, True, False, right)
        asked.add((observation["image"].tobytes(), other))
    assert len(asked) >= 3


def test_the_moves_that_are_offered_in_hanabi_tell_nothing_of_the_own_cards():
    env = vlgym.make(NEXT_MOVE.id, game="vlgym/Hanabi-v0")
    lists = set()
    for seed in range(12):
        env.reset(seed=seed)
        lists.add(tuple(env.legal_actions()))
        assert set(env._table.game.moves(env._seats[1])) <= set(env.legal_actions())
    assert len(lists) == 1


def test_the_suite_plays_every_game_and_asks_about_every_game(tmp_path: Path):
    parts, missing = plan_suite("vs-bench")
    assert missing == []
    played = [part.env_id for part in parts if part.env_id != NEXT_MOVE.id]
    (asked,) = [part for part in parts if part.env_id == NEXT_MOVE.id]
    assert sorted(played) == sorted(spec.id for spec in VS_BENCH)
    assert sorted(item["game"] for item in asked.items) == sorted(played)
    assert not any(part.changed for part in parts if part.env_id != NEXT_MOVE.id)  # so that returns are normalised

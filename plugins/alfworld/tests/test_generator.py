"""Games are drawn from real rooms, are not solved at the start, and are the same for the same generator state."""

import collections

import numpy as np
import pytest
from vlgym_alfworld import package
from vlgym_alfworld.drawn import TextGame
from vlgym_alfworld.game import HEAT, LOOK, PICK_TWO, TASKS, met_conditions
from vlgym_alfworld.generator import MOST_TOGETHER, draw_game, fitting_scenes
from vlgym_alfworld.rooms import load_room, scene_numbers

from vlgym.errors import UserError


def test_training_games_lie_in_seen_rooms_and_test_games_in_unseen_ones():
    assert len(scene_numbers(True)) == 96
    assert len(scene_numbers(False)) == 24
    for task in TASKS:
        assert {draw_game(np.random.default_rng(i), task).scene for i in range(20)} <= set(scene_numbers(True))
        assert {draw_game(np.random.default_rng(i), task, seen=False).scene for i in range(20)} <= set(
            scene_numbers(False)
        )


def test_tasks_are_set_in_the_kinds_of_room_that_alfred_allows():
    for task in TASKS:
        kinds = {load_room(scene).kind for scene in fitting_scenes(task, True)}
        assert kinds == package.constants().GOALS_VALID[task], task


def test_no_condition_is_met_at_the_start_and_the_sentence_names_the_goal():
    running = TextGame()
    for seed, task in enumerate(TASKS):
        game = draw_game(np.random.default_rng(seed), task)
        running.open(game)
        assert not any(met_conditions(game.goal, running.world))
        assert not running.won
        assert game.goal.thing.lower() in game.sentence
        assert (game.goal.parent or game.goal.toggle).lower() in game.sentence
        things = list(running.world.object_kinds.values())
        assert task != PICK_TWO or things.count(game.goal.thing.lower()) >= 2
        assert task != LOOK or "desklamp" in things
    running.close()


def test_things_lie_only_where_the_packages_table_allows_and_never_more_than_eight_together():
    running = TextGame()
    table = {
        kind.lower(): {thing.lower() for thing in things}
        for kind, things in package.constants().VAL_RECEPTACLE_OBJECTS.items()
    }
    for seed in range(6):
        running.open(draw_game(np.random.default_rng(seed), TASKS[seed % 6]))
        world = running.world
        for thing, place in world.holder.items():
            if world.object_kinds[thing] != "desklamp":
                assert world.object_kinds[thing] in table[world.receptacle_kinds[place]]
        assert max(collections.Counter(world.holder.values()).values()) <= MOST_TOGETHER + 1  # one lamp on top
    running.close()


def test_a_room_that_does_not_afford_the_task_is_refused_with_those_that_do():
    with pytest.raises(UserError, match=r"Scene 401 \(Bathroom\) affords no pick_heat.* 7, "):
        draw_game(np.random.default_rng(0), HEAT, scene=401)
    with pytest.raises(UserError, match="no floor plan 99"):
        draw_game(np.random.default_rng(0), HEAT, scene=99)

"""Every game as a PettingZoo environment: the installed PettingZoo's own tests pass."""

from __future__ import annotations

import warnings
from functools import partial

import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

import vlgym
from vlgym.registry import get_registry
from vlgym.several import SKILL

GAMES = sorted(
    spec.id for spec in get_registry().specs.values() if spec.family == "pettingzoo" and SKILL in spec.skills
)


@pytest.mark.parametrize("env_id", GAMES)
def test_pettingzoos_own_tests_pass(env_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel_api_test(vlgym.parallel_env(env_id, image_size=(96, 96)), num_cycles=60)
        api_test(vlgym.aec_env(env_id, image_size=(96, 96)), num_cycles=60)
        parallel_seed_test(partial(vlgym.parallel_env, env_id, image_size=(96, 96)), num_cycles=20)
        seed_test(partial(vlgym.aec_env, env_id, image_size=(96, 96)), num_cycles=20)


@pytest.mark.parametrize("env_id", GAMES)
def test_a_parallel_game_of_random_replies_ends(env_id: str) -> None:
    env = vlgym.parallel_env(env_id, image_size=(96, 96))
    env.reset(seed=1)
    for agent in env.agents:
        env.action_space(agent).seed(3)
    rounds = 0
    while env.agents:
        env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        rounds += 1
        assert rounds < 500
    assert env.table.invalid == [0] * env.table.game.seats

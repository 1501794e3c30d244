"""The certificate of a game; what a game at once and a question add. The sweep has the rest."""

import warnings
from functools import partial

import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

import vlgym
from vlgym.games.several import SKILL
from vlgym.registry import get_registry
from vlgym.testing import CHECKS, GAME_CHECKS, EnvConformance, GameConformance

SWEPT = {
    "floor", "blind", "history", "parser_time", "resources", "processes", "described", "vector",
    "levels", "silence",
}  # fmt: skip


class TestGame(GameConformance):
    """Moves in turn, with hidden cards."""

    env_id = "vlgym/KuhnPoker-v0"
    checks = (*(name for name in CHECKS if name not in SWEPT), *GAME_CHECKS)
    garbage = 100


class TestGameAtOnce(GameConformance):
    env_id = "vlgym/CoinGame-v0"
    checks = ("recorded", "state", "at_once")


class TestQuestion(EnvConformance):
    """A question about a game is an environment for one."""

    env_id = "vlgym/NextMove-v0"
    checks = ("recorded", "card", "state", "garbage", "copies")
    garbage = 30


# Every game of several seats, football's team too.
GAMES = sorted(spec.id for spec in get_registry().specs.values() if SKILL in spec.skills)


@pytest.mark.exhaustive  # tests/games has them for a game in turn and for one at once
@pytest.mark.parametrize("env_id", GAMES)
def test_pettingzoos_own_tests_pass(env_id: str) -> None:
    parallel, aec = (partial(make, env_id, image_size=(96, 96)) for make in (vlgym.parallel_env, vlgym.aec_env))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel_api_test(parallel(), num_cycles=30)
        api_test(aec(), num_cycles=30)
        parallel_seed_test(parallel, num_cycles=10)
        seed_test(aec, num_cycles=10)

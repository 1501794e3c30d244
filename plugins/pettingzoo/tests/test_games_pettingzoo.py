"""Games as PettingZoo environments: the installed PettingZoo's own tests pass."""

from __future__ import annotations

import warnings
from functools import partial

import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

import vlgym
from vlgym.games.several import SKILL
from vlgym.registry import get_registry

GAMES = sorted(spec.id for spec in get_registry().specs.values() if SKILL in spec.skills)
"""Every game of several seats, football's team too."""


@pytest.mark.exhaustive  # tests/games has them for a game in turn and for one at once
@pytest.mark.parametrize("env_id", GAMES)
def test_pettingzoos_own_tests_pass(env_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel_api_test(vlgym.parallel_env(env_id, image_size=(96, 96)), num_cycles=30)
        api_test(vlgym.aec_env(env_id, image_size=(96, 96)), num_cycles=30)
        parallel_seed_test(partial(vlgym.parallel_env, env_id, image_size=(96, 96)), num_cycles=10)
        seed_test(partial(vlgym.aec_env, env_id, image_size=(96, 96)), num_cycles=10)

"""The PettingZoo environments of the core pass PettingZoo's own tests."""

import copy
import pickle
import re
import sys
import warnings
from functools import partial

import gymnasium
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.test.state_test import test_state as state_test
from pettingzoo.test.state_test import test_state_space as state_space_test
from pettingzoo.utils.conversions import aec_to_parallel

import vlgym
from vlgym.errors import NotInstalledError, UserError
from vlgym.registry.installing import how_to_install

GAMES = ("vlgym/Nim-v0", "vlgym/Meet-v0")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("env_id", GAMES)
def test_pettingzoos_own_tests_pass(env_id: str) -> None:
    parallel_api_test(vlgym.parallel_env(env_id), num_cycles=30)
    api_test(vlgym.aec_env(env_id), num_cycles=30)
    parallel_seed_test(partial(vlgym.parallel_env, env_id), num_cycles=15)
    seed_test(partial(vlgym.aec_env, env_id), num_cycles=15)


def test_moves_at_once_do_not_show_before_the_last_is_there() -> None:
    env = vlgym.aec_env("vlgym/Meet-v0")
    env.reset(seed=1)
    before = env.observe("player_1")
    env.step("<action>left</action>")
    after = env.observe("player_1")
    assert env.agent_selection == "player_1"
    assert (before["image"] == after["image"]).all()
    assert before["text"] == after["text"]


@pytest.mark.parametrize("env_id", GAMES)
def test_copies_go_on_as_the_originals(env_id: str) -> None:
    env = vlgym.aec_env(env_id)
    env.reset(seed=3)
    for agent in env.agents:
        env.action_space(agent).seed(1)
    env.step(env.action_space(env.agent_selection).sample())
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):  # noqa: S301 - made here
        twin = copy.deepcopy(env)
        for each in (twin, other):
            while each.agents:
                agent = each.agent_selection
                ended = each.terminations[agent] or each.truncations[agent]
                each.step(None if ended else each.action_space(agent).sample())
        assert len(twin.table.log) > 1
        assert (other.table.save(), other.table.returns) == (twin.table.save(), twin.table.returns)
        for each in (twin, other):
            each.reset()
        assert other.table.save() == twin.table.save()
        other.close()


def test_an_unknown_agent_and_a_reply_that_is_no_string_are_refused() -> None:
    env = vlgym.parallel_env("vlgym/Meet-v0")
    env.reset(seed=0)
    with pytest.raises(UserError, match="agent='player_9' is not one of player_0, player_1, player_2"):
        env.step({"player_9": "x"})
    with pytest.raises(UserError, match="must be a string, not int"):
        env.step({"player_0": 3})


def test_only_a_game_whose_seats_all_move_in_every_round_says_that_it_is_parallelizable() -> None:
    parallel_api_test(aec_to_parallel(vlgym.aec_env("vlgym/Meet-v0")), num_cycles=30)
    with pytest.raises(AssertionError, match="is_parallelizable"):
        aec_to_parallel(vlgym.aec_env("vlgym/Nim-v0"))
    assert vlgym.parallel_env("vlgym/Nim-v0").metadata["is_parallelizable"]


@pytest.mark.parametrize("env_id", GAMES)
def test_the_state_passes_pettingzoos_own_tests_and_needs_a_game(env_id: str) -> None:
    for make in (vlgym.aec_env, vlgym.parallel_env):
        with pytest.raises(gymnasium.error.ResetNeeded, match="No game was begun"):
            make(env_id).state()
    env = vlgym.aec_env(env_id)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state_space_test(env)
        state_test(env, 30)
    height, width = env.table.game.image_size
    assert env.state().shape == (height, env.table.game.seats * width, 3)


def test_rendering_shows_all_seats_side_by_side_and_there_is_no_window() -> None:
    env = vlgym.aec_env("vlgym/Meet-v0", render_mode="rgb_array")
    env.reset(seed=0)
    height, width = env.table.game.image_size
    assert env.render().shape == (height, 3 * width, 3)
    words = r"^render_mode='human': there is no window\. Take rgb_array, or .* `vlgym ui`\.$"
    with pytest.raises(UserError, match=words):
        vlgym.aec_env("vlgym/Nim-v0", render_mode="human")


def test_without_pettingzoo_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    monkeypatch.delitem(sys.modules, "vlgym.games.pettingzoo_envs", raising=False)
    monkeypatch.delattr(vlgym.games, "pettingzoo_envs", raising=False)
    with pytest.raises(NotInstalledError, match=re.escape(how_to_install("vlgym-pettingzoo"))):
        vlgym.parallel_env("vlgym/Nim-v0")

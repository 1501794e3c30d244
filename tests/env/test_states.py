"""A saved state says what it is of, and whatever does not fit is refused in one line."""

import copy
import json
import pickle
import threading
from collections.abc import Callable
from typing import Any

import cloudpickle
import gymnasium
import pytest
from toys import Walk, make_spec, make_walk

from vlgym.env.states import CONTENT, seal_state
from vlgym.errors import UserError
from vlgym.parsers import TagParser


def begun(**kwargs: Any) -> Walk:
    env = make_walk(**kwargs)
    env.reset(seed=3)
    env.step("<action>left</action>")
    return env


def test_a_state_is_plain_data_and_fits_any_render_mode():
    state = json.loads(json.dumps(begun(max_turns=6).get_state()))
    assert state == json.loads(json.dumps(begun(max_turns=6).get_state()))
    _, info = make_walk(max_turns=6, render_mode="rgb_array").set_state(state)
    assert info["vlgym"]["turn"] == 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda state: None, "This is not a saved state: it is of type NoneType."),
        (lambda state: [1], "it is of type list"),
        (lambda state: {**state, "format": 7}, "has the form 7; this vlgym reads form 1"),
        (lambda state: {name: state[name] for name in state if name != "rng"}, "it lacks rng"),
        (lambda state: {name: state[name] for name in CONTENT}, "it lacks digest, env, format"),
        (lambda state: {**state, "counters": [0, 0.0, False]}, "is damaged"),
        (lambda state: {**state, "digest": "0" * 16}, "is damaged"),
        (lambda state: {**state, "env": None}, "is damaged"),
        (lambda state: reseal(state, "vlgym/Coin-v0"), "is of vlgym/Coin-v0, and this is vlgym/Walk-v0"),
        (lambda state: reseal(state, max_turns=3), "made with max_turns=3, and this environment has max_turns=8"),
        (lambda state: reseal({**state, "events": [{}]}), "cannot be restored: KeyError"),
        (lambda state: reseal({**state, "rng": {}}), "cannot be restored"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line_and_the_episode_goes_on(damage, message):
    env = begun()
    before = env.get_state()
    with pytest.raises(UserError) as caught:
        env.set_state(damage(env.get_state()))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert env.get_state() == before
    assert env.step("<action>left</action>")[4]["vlgym"]["turn"] == 2


def test_a_state_that_loads_halfway_leaves_the_episode_before() -> None:
    class Halfway(Walk):
        def save(self) -> dict[str, Any]:
            return {"position": self.position}

        def load(self, state: dict[str, Any]) -> None:
            self.position = 99
            raise ValueError("no more\nthan half")

    env = Halfway(vlgym_spec=make_spec())
    env.reset(seed=1)
    env.step("<action>left</action>")
    before = env.position
    with pytest.raises(UserError, match="cannot be restored: ValueError: no more than half"):
        env.set_state(env.get_state())
    assert env.position == before


def reseal(state: dict[str, Any], env_id: str = "vlgym/Walk-v0", **arguments: Any) -> dict[str, Any]:
    content = {name: state[name] for name in CONTENT}
    return seal_state(content, env_id, state["env"]["arguments"] | arguments)


class Locked(TagParser):
    """Holds a lock, which nothing can copy."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


class Named(TagParser):
    """Of a module, so it can be pickled."""

    word = ""


WAYS: list[Callable[[Any], Any]] = [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))]  # noqa: S301
both_ways = pytest.mark.parametrize("copied", WAYS, ids=["deep copy", "pickle"])


@both_ways
def test_a_copy_has_its_own_arguments_and_a_closed_one_stays_closed(copied):
    parser = Named()
    parser.word = "copied"
    env = begun(parser=parser)
    other = copied(gymnasium.wrappers.RecordEpisodeStatistics(env)).unwrapped
    assert (other.parser is not parser, other.parser.word) == (True, "copied")
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded, match="closed"):
        copied(env).step("<action>left</action>")


@both_ways
def test_an_argument_that_cannot_be_copied_is_named_in_one_line(copied):
    env = begun(parser=Locked())
    words = r"cannot be copied or pickled, as its parser cannot: TypeError: .*lock"
    with pytest.raises(UserError, match=words) as error:
        copied(env)
    assert "\n" not in str(error.value)


def test_an_argument_of_no_module_is_left_to_a_better_pickler():
    class Local(TagParser):
        """Of no module."""

    env = begun(parser=Local())
    with pytest.raises(UserError, match="its parser cannot"):
        pickle.dumps(env)
    assert cloudpickle.loads(cloudpickle.dumps(env)).get_state() == env.get_state()


class Dice(Walk):
    """Every step also throws a die."""

    def start(self, rng: Any, options: dict[str, Any]) -> None:
        super().start(rng, options)
        self.thrown = [int(rng.integers(1000))]

    def act(self, action: str) -> Any:
        self.thrown.append(int(self.np_random.integers(1000)))
        return super().act(action)


class SavedDice(Dice):
    def save(self) -> dict[str, Any]:
        return {"position": self.position, "target": self.target, "thrown": list(self.thrown)}

    def load(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


@pytest.mark.parametrize("kind", [Dice, SavedDice])
def test_branches_of_a_state_differ_in_luck_by_their_seed_alone(kind: type[Dice]) -> None:
    env, other = kind(vlgym_spec=make_spec()), kind(vlgym_spec=make_spec())
    env.reset(seed=3)
    env.step("<action>left</action>")
    state, branches = env.get_state(), []
    for seed in (None, None, 1, 2, 1):
        env.set_state(state)
        if seed is not None:
            env.reseed(seed)
        env.step("<action>right</action>")
        other.set_state(json.loads(json.dumps(env.get_state())))
        other.set_state(other.get_state())
        assert other.np_random.bit_generator.state == env.np_random.bit_generator.state
        for each in (env, other):
            each.step("<action>right</action>")
        assert env.thrown == other.thrown
        branches.append(env.thrown)
    assert branches[0] == branches[1]
    assert branches[2] == branches[4]
    assert len({tuple(branch) for branch in branches}) == 3
    assert len({tuple(branch[:2]) for branch in branches}) == 1  # the past stays


def test_without_an_episode_there_is_nothing_to_reseed() -> None:
    with pytest.raises(gymnasium.error.ResetNeeded):
        make_walk().reseed(1)

"""Options of `reset`: wrong ones are refused, and a reset that fails changes nothing."""

import json
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from toys import Coin, Walk, make_walk

from vlgym.env.reset_options import ResetOption, one_of, whole_number
from vlgym.errors import UserError

RIGHT = "<action>right</action>"


class Fragile(Walk):
    """An episode with `fuse` set breaks while it begins, when the state has changed already."""

    reset_options: ClassVar = {**Walk.reset_options, "fuse": whole_number("when it breaks", 0, 3)}

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().start(rng, options)
        if options.get("fuse"):
            self.position = 99
            raise UserError("it broke")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"luck": 1}, "reset option 'luck': Coin takes no options"),
        ({"targt": 4}, r"reset option='targt' is not one of target\. Nearest: target\."),
        ({"target": 9}, r"reset option target=9 must be an integer from -5 to 5\."),
        ({"target": "4"}, r"reset option target='4' must be an integer"),
        ({"target": 1.5}, r"target=1\.5 must be"),
        ({"target": True}, r"target=True must be"),
        ({"target": None}, r"target=None must be"),
        (["target"], r"options must be a dict of names and values, or None"),
    ],
)
def test_an_unknown_or_wrong_option_is_refused_with_what_is_valid(options: Any, words: str) -> None:
    env = Coin() if "Coin" in words else make_walk()
    with pytest.raises(UserError, match=words):
        env.reset(seed=0, options=options)


def test_numbers_of_numpy_are_taken_and_the_state_stays_plain() -> None:
    env = make_walk()
    env.reset(seed=0, options={"target": np.int64(-4)})
    assert env.target == -4
    assert json.loads(json.dumps(env.get_state()))["start"]["options"] == {"target": -4}


@pytest.mark.parametrize("options", [{"targt": 4}, {"target": 9}, {"fuse": 1}])
@pytest.mark.parametrize("seed", [None, 5])
def test_a_reset_that_fails_leaves_the_running_episode_as_it_was(options, seed):
    env, twin = Fragile(), Fragile()
    for each in (env, twin):
        each.reset(seed=3, options={"target": 4})
        each.step(RIGHT)
    before = env.get_state()
    with pytest.raises(UserError):
        env.reset(seed=seed, options=options)
    assert env.get_state() == before == twin.get_state()
    assert (env.position, env.target, env.np_random_seed) == (1, 4, 3)
    for _ in range(3):
        a, b = env.step(RIGHT), twin.step(RIGHT)
        assert (a[0]["text"], a[1:]) == (b[0]["text"], b[1:])
    assert env.reset()[0]["text"] == twin.reset()[0]["text"]  # the generator is where it was, too


@pytest.mark.parametrize("options", [{"targt": 4}, {"fuse": 1}])
def test_after_a_failed_reset_without_a_running_episode_a_reset_is_needed(options):
    env = Fragile()
    with pytest.raises(UserError):
        env.reset(seed=0, options=options)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(RIGHT)
    env.reset(seed=0, options={"target": 1})
    assert env.step(RIGHT)[2]
    with pytest.raises(UserError):
        env.reset(seed=0, options=options)
    assert env.success()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(RIGHT)


def test_the_seed_and_its_split_belong_to_the_saved_state() -> None:
    env, other = make_walk(), make_walk()
    env.reset(seed=2 << 58)
    assert (env.reset_seed, env.seed_split) == (2 << 58, "test")
    other.reset(seed=1)
    other.set_state(env.get_state())
    assert (other.reset_seed, other.seed_split) == (2 << 58, "test")
    env.reset()
    assert (env.reset_seed, env.seed_split) == (None, "test")


def test_a_choice_names_the_nearest_and_a_reader_may_say_why_or_only_that() -> None:
    class Choosy(Walk):
        reset_options: ClassVar = {
            "side": one_of("where", ("left", "right")),
            "size": ResetOption("how large", "a number", lambda env, value: float(value)),
        }

    env = Choosy()
    with pytest.raises(UserError, match=r"side='rihgt' must be one of left, right\. Nearest: right\."):
        env.reset(options={"side": "rihgt"})
    with pytest.raises(UserError, match=r"reset option size='big' must be a number\."):
        env.reset(options={"size": "big"})

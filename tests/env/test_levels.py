"""Levels change the beginning of an episode, by the constructor or by `reset`."""

from typing import Any, ClassVar

import numpy as np
import pytest
from toys import Walk

from vlgym.env.reset_options import whole_number
from vlgym.errors import UserError


class Steps(Walk):
    """Walk; levels change `reach`, the longest way, and the turns.

    Options of `reset`: `target`, `level`.
    """

    reset_options: ClassVar = {"target": whole_number("where to go", 0, lambda env: env.reach, "up to reach")}
    level_arguments: ClassVar = ({"reach": 1, "max_turns": 2}, {"reach": 4}, {"reach": 4})
    saves = False

    def __init__(self, *, reach: int = 5, **kwargs: Any) -> None:
        self.reach = reach
        super().__init__(**kwargs)

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        assert set(options) <= {"target"}
        self.target = options.get("target", self.reach)
        self.position = 0
        self.luck = int(rng.integers(10**9))

    def save(self) -> dict[str, Any] | None:
        names = ("target", "position", "luck")
        return {name: getattr(self, name) for name in names} if self.saves else None

    def load(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


class SavedSteps(Steps):
    saves = True


def begin(env: Steps, level: int | None = None, **options: Any) -> tuple[Any, ...]:
    env.reset(seed=7, options=options | ({} if level is None else {"level": level}))
    return env.target, env.max_turns, env.luck


def test_constructor_and_reset_choose_the_same_episode_and_none_changes_nothing():
    env = Steps(reach=3)
    plain = begin(env)
    assert plain[:2] == (3, 100)
    assert plain[2] == int(np.random.default_rng(7).integers(10**9))  # as the seed leaves it
    assert begin(env, 0)[:2] == (1, 2)
    assert begin(env, 0) == begin(Steps(reach=3, level=0)) == begin(Steps(reach=3, level=1), 0)
    assert begin(env) == plain  # no level stays behind
    env.reach = 2
    assert begin(env)[0] == 2  # what is set between episodes stays
    assert begin(env, 0)[0] == 1
    assert begin(env)[0] == 2
    assert Steps(level=1).arguments["level"] == 1
    assert "level" not in env.arguments


def test_the_same_seed_is_another_world_on_every_level() -> None:
    env = Steps()
    assert len({begin(env, level)[2] for level in (None, 0, 1, 2)}) == 4


@pytest.mark.parametrize("level", [3, -1, 1.0, True, "1"])
def test_a_level_that_does_not_exist_is_refused_with_those_that_do(level: Any) -> None:
    env = Steps()
    begin(env, 0)
    before = env.get_state()
    words = rf"level={level!r} must be an integer from 0 to 2: there are 3 levels\.$"
    for call in (lambda: Steps(level=level), lambda: env.reset(options={"level": level})):
        with pytest.raises(UserError, match=words):
            call()
    assert env.get_state() == before
    assert env.max_turns == 2
    with pytest.raises(UserError, match=rf"^level={level!r}: Walk has no levels\.$"):
        Walk(level=level)


def test_other_options_are_read_on_the_level_that_is_asked_for() -> None:
    env = Steps()
    assert begin(env, 1, target=4)[0] == 4
    with pytest.raises(UserError, match="target=4 must be an integer from 0 to 1"):
        begin(env, 0, target=4)
    assert (env.reach, env.target) == (4, 4)  # the episode before goes on on its level
    assert begin(env, target=5)[0] == 5


@pytest.mark.parametrize("kind", [Steps, SavedSteps])
def test_a_state_brings_its_level_with_it(kind: type[Steps]) -> None:
    env, other = kind(), kind()
    begin(env, 0)
    begin(other, 1)
    other.set_state(env.get_state())
    assert (other.reach, other.max_turns, other.luck) == (1, 2, env.luck)

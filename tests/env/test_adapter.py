"""An existing Gymnasium environment and a table of action names make a VLEnv."""

from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from vlgym.env.adapter import GymAdapter
from vlgym.env.prompts import PromptTemplate
from vlgym.env.rendering import fit_image
from vlgym.env.reset_options import whole_number
from vlgym.errors import UserError


class Ladder(gymnasium.Env[Any, Any]):
    """Climb four rungs, which `render` draws as a brightness; counts its calls of `close`."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(5)
    closed = 0

    def __init__(self, render_mode: str | None = "rgb_array") -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.rung = int(self.np_random.integers(3))
        self.options = options
        return self.rung, {"seed": seed}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.rung = max(0, self.rung + (1 if action == 1 else -1))
        return self.rung, float(self.rung == 4), self.rung == 4, False, {"rung": self.rung}

    def render(self) -> Any:
        return np.full((4, 6, 3), 50 * self.rung, np.uint8) if self.render_mode else None

    def close(self) -> None:
        Ladder.closed += 1


class Climb(GymAdapter):
    actions: ClassVar[dict[str, Any]] = {"go down": 0, "go up": 1}
    prompt = PromptTemplate(1, "{task} {format}", "{actions}")
    render_inner: str | None = "rgb_array"

    def make_inner(self) -> Ladder:
        return Ladder(self.render_inner)

    def task(self) -> str:
        return "Climb to the top."


UP = "<action>go up</action>"


def test_it_is_a_valid_gymnasium_environment() -> None:
    check_env(Climb(image_size=(40, 60), render_mode="rgb_array"), skip_render_check=True)


def test_names_become_the_inner_actions_and_reward_and_end_pass_through() -> None:
    env = Climb(image_size=(40, 60))
    observation, info = env.reset(seed=0)
    begun = env.inner_obs
    assert info["vlgym"]["legal_actions"] == ["go down", "go up"]
    assert observation["image"].shape == (40, 60, 3)
    assert observation["image"].max() == 50 * begun
    for rung in range(begun + 1, 4):
        _, reward, terminated, _, info = env.step(UP)
        assert (env.inner_obs, env.inner_info, reward) == (rung, {"rung": rung}, 0.0)
        assert not terminated
        assert not info["success"]
    _, reward, terminated, truncated, info = env.step(UP)
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)


def test_the_seed_decides_the_inner_episode() -> None:
    env, other, starts = Climb(), Climb(), []
    for seed in (0, 1, 2, 0, 1, 2):
        env.reset(seed=seed)
        starts.append((env.inner_obs, env.inner_info["seed"]))
    assert starts[:3] == starts[3:]
    assert len(set(starts)) == 3
    env.step(UP)
    other.set_state(env.get_state())  # by replay
    assert other.inner_obs == env.inner_obs


def test_declared_options_reach_the_inner_environment() -> None:
    class Choose(Climb):
        reset_options: ClassVar = {"level": whole_number("the ladder", 0, 3)}

    env = Choose()
    env.reset(seed=0, options={"level": 2})
    assert env.inner is not None
    assert env.inner.options == {"level": 2}


def test_closing_frees_the_inner_environment_once_and_a_reset_builds_another() -> None:
    env = Climb()
    assert env.inner is None  # nothing is built before
    env.reset(seed=0)
    assert isinstance(env.inner, Ladder)
    before = Ladder.closed
    env.close()
    env.close()
    assert Ladder.closed == before + 1
    env.reset(seed=0)
    assert env.inner is not None


def test_an_environment_without_a_picture_is_a_user_error() -> None:
    env = Climb()
    env.render_inner = None
    with pytest.raises(UserError, match=r"found int .* draw with render_mode='rgb_array'\."):
        env.reset(seed=0)


LEVELS = np.array([[0, 51], [204, 255]], np.uint8)
PAINTED = np.stack([LEVELS, LEVELS // 2, LEVELS], axis=2)


@pytest.mark.parametrize(("frame", "seen"), [
    (PAINTED, PAINTED), (PAINTED / 255, PAINTED),
    ((PAINTED / 255).astype(np.float32) * 1.0001, PAINTED), (PAINTED > 100, (PAINTED > 100) * 255),
    (LEVELS > 100, np.stack([(LEVELS > 100) * 255] * 3, 2)),
    (LEVELS, np.stack([LEVELS] * 3, 2)), (LEVELS[..., None] / 255, np.stack([LEVELS] * 3, 2)),
    (np.dstack([PAINTED, np.full((2, 2), 255, np.uint8)]), PAINTED),
    (np.dstack([PAINTED, np.zeros((2, 2), np.uint8)]), 0 * PAINTED),
    (np.dstack([PAINTED / 255, np.full((2, 2), 0.5)]), np.rint(PAINTED / 2)),
    (PAINTED.astype(np.int64), PAINTED),
])  # fmt: skip
def test_pictures_of_every_usual_kind_are_seen_as_they_are(frame: Any, seen: Any) -> None:
    assert np.array_equal(fit_image(frame, (2, 2)), seen)


@pytest.mark.parametrize("frame", [
    PAINTED / 100.0, PAINTED.astype(np.int64) + 1, PAINTED / 255 - 0.5,
    np.full((2, 2, 3), np.nan), np.zeros((2, 2, 2), np.uint8),
    np.zeros((2, 2, 2, 3), np.uint8), np.zeros((0, 2, 3)), np.zeros(7, np.uint8),
    np.array([["a", "b"]]), [PAINTED, PAINTED],
])  # fmt: skip
def test_what_is_no_picture_is_refused_in_one_line(frame: Any) -> None:
    with pytest.raises(UserError, match=r"^A picture is .* found .*$"):
        fit_image(frame, (2, 2))


def test_an_observation_that_is_a_picture_is_shown_without_a_drawing() -> None:
    class Painted(Ladder):
        def reset(self, **kwargs: Any) -> Any:
            return PAINTED.repeat(8, 0).repeat(8, 1), super().reset(**kwargs)[1]

    env = Climb(image_size=(16, 16))
    env.make_inner = lambda: Painted(None)  # type: ignore[method-assign]
    assert np.array_equal(env.reset(seed=0)[0]["image"][::8, ::8], PAINTED)

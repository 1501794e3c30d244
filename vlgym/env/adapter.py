"""GymAdapter: a Gymnasium environment with discrete actions and a table of their names as a VLEnv.

docs/write-a-plugin.md shows one: `actions`, `prompt`, `make_inner()` and `task()`.
"""

from typing import Any, ClassVar

import gymnasium
import numpy as np

from ..types import Image, Outcome
from .base import VLEnv
from .rendering import fit_image


class GymAdapter(VLEnv):
    """Drives `self.inner`, which the first reset builds: constructing touches no graphics driver.

    Attributes:
        actions: action name -> the inner environment's action.
        inner: the wrapped environment; `None` before the first reset and after `close()`.
        inner_obs: last observation of the inner environment.
        inner_info: copy of the last info of the inner environment.
        last_reward: last reward; with `done`, the default success rule reads it.
        done: the inner environment terminated.
    """

    actions: ClassVar[dict[str, Any]] = {}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.inner: Any = None
        self.inner_obs: Any = None
        self.inner_info: dict[str, Any] = {}
        self.last_reward = 0.0
        self.done = False

    def make_inner(self) -> gymnasium.Env[Any, Any]:
        """Build the wrapped environment; its observation or `render()` gives an image."""
        raise TypeError(f"{type(self).__name__} must define make_inner()")

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Reset the inner environment, built if needed, with a seed from `rng` and the options."""
        if self.inner is None:
            self.inner = self.make_inner()
        seed = int(rng.integers(2**31))
        self.inner_obs, info = self.inner.reset(seed=seed, options=options or None)
        self.inner_info = dict(info)
        self.last_reward, self.done = 0.0, False

    def act(self, action: str) -> Outcome:
        """Step the inner environment with the action of that name."""
        self.inner_obs, reward, terminated, truncated, info = self.inner.step(self.actions[action])
        self.inner_info = dict(info)
        self.last_reward, self.done = float(reward), bool(terminated)
        return Outcome(self.last_reward, self.done, bool(truncated))

    def reseed(self, seed: int) -> None:
        """As of `VLEnv`: of the inner environment's generator too."""
        super().reseed(seed)
        self.inner.unwrapped.np_random.bit_generator.state = self.np_random.bit_generator.state

    def image(self) -> Image:
        """Return the inner observation if it is an RGB image of bytes, else what `render()` draws.

        It is fitted to `image_size`. Without a drawing any other picture will do as observation.
        """
        frame = self.inner_obs
        pixels = isinstance(frame, np.ndarray) and frame.ndim == 3 and frame.shape[2] == 3
        if not (pixels and frame.dtype == np.uint8):
            drawn = self.inner.render()
            frame = frame if drawn is None else drawn
        return fit_image(frame, self.image_size)

    def legal_actions(self) -> list[str]:
        return list(self.actions)

    def success(self) -> bool:
        """The inner environment terminated with a positive reward."""
        return self.done and self.last_reward > 0

    def close(self) -> None:
        """Close the inner environment; the next reset builds a new one."""
        if self.inner is not None:
            self.inner.close()
            self.inner = None
        self.inner_obs = None
        super().close()

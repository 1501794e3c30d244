"""Wrappers that plain Gymnasium lacks for image-and-text observations. Everything else (`RecordEpisodeStatistics`,
`TransformReward`, ...) is Gymnasium's own and works as it is."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from .errors import UserError
from .rendering import fit_image


class ResizeImage(
    gymnasium.ObservationWrapper[dict[str, Any], str, dict[str, Any]], gymnasium.utils.RecordConstructorArgs
):
    """Scale the image of each observation into `size` (height, width), keeping the aspect; the text is untouched.

    Prefer the environment's own `image_size` where it draws at any size; this is a model's pixel budget for those
    that do not.
    """

    def __init__(self, env: gymnasium.Env[dict[str, Any], str], size: tuple[int, int]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, size=size)
        gymnasium.ObservationWrapper.__init__(self, env)
        if len(size) != 2 or min(size) < 1:
            raise UserError(f"size={size!r} must be (height, width) in pixels, both positive.")
        if not isinstance(env.observation_space, spaces.Dict) or "image" not in env.observation_space.spaces:
            raise UserError("ResizeImage needs an observation space Dict with the key 'image'.")
        self.size = (int(size[0]), int(size[1]))
        self.observation_space = spaces.Dict(
            {**env.observation_space.spaces, "image": spaces.Box(0, 255, (*self.size, 3), np.uint8)}
        )

    def observation(self, observation: dict[str, Any]) -> dict[str, Any]:
        """Return a new observation with the scaled image."""
        return {**observation, "image": fit_image(observation["image"], self.size)}

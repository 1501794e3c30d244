"""One environment elsewhere as Gymnasium makes it, for plugins whose dependencies clash with ours.

    gymnasium.make("vlgym:remote", url="tcp://HOST:PORT", env_id="vlgym/WebShop-v1")

The plugin need not be installed here; a parser of `vlgym.parsers.PARSERS` reads its replies.
"""

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils.seeding import np_random

from ..env.spaces import MessageSpace
from ..errors import check_choice
from ..play.remote import RemoteEnv, Step
from ..types import Image
from . import open_group

HIGHEST_SEED = 2**31


class ServedEnv(RemoteEnv):
    """An environment on a server of `vlgym serve --workers`, or in a worker process.

    `url` is as `--envs`: `tcp://HOST:PORT`, `processes:1`. `reset()` without a seed draws one.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, url: str, env_id: str, render_mode: str | None = None, **arguments: Any) -> None:
        check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self.render_mode, self._image = render_mode, None
        self._group = open_group(url, envs=1)
        try:
            super().__init__(self._group, env_id, arguments)
            height, width = self.facts["image_size"]
            self.observation_space = spaces.Dict(
                {"image": spaces.Box(0, 255, (height, width, 3), np.uint8), "text": MessageSpace()}
            )
        except BaseException:
            self._group.close()
            raise

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if seed is None:
            seed = int(self.np_random.integers(HIGHEST_SEED))
        else:
            self.np_random, _ = np_random(seed)
        observation, info = super().reset(seed=seed, options=options)
        self._image = observation["image"]
        return observation, info

    def step(self, action: str) -> Step:
        answer = super().step(action)
        self._image = answer[0]["image"]
        return answer

    def render(self) -> Image | None:  # type: ignore[override]
        """Return the last picture in mode `rgb_array`, else `None`."""
        return self._image if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._group.close()

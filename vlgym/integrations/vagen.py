"""VAGEN: an environment in the form of its `GymImageEnv`, of commit c27067d9, which is not imported.

VAGEN's registry of environments names the class, `vlgym: vlgym.integrations.vagen.Game`. Environments
step in the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PIL import Image as PILImage

from ..registry.making import make
from .agent import Task

MARK = "<image>"  # place of a picture in a text


class Game:
    """One environment as VAGEN takes it: the system prompt holds the instructions, an observation the turn.

    Args:
        env_config: `env_id`, and `split` and `arguments` where they are not `train` and none.
    """

    def __init__(self, env_config: Mapping[str, Any]) -> None:
        self.config = env_config
        task = Task.from_row(env_config)
        self.env = make(task.env_id, **task.arguments)

    async def system_prompt(self) -> dict[str, Any]:
        """Return the episode's instructions, which are known after `reset`."""
        return {"obs_str": _plain(self.env.instructions)}

    async def reset(self, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode; VAGEN's seed is its number in the split, whose seed is as in `vlgym eval`."""
        observation, info = self.env.reset(seed=Task.from_row({**self.config, "number": seed}).seed)
        return _show(observation, info), info

    async def step(self, action_str: str) -> tuple[dict[str, Any], float, bool, dict[str, Any]]:
        """Play a reply; `info` has success, `truncated` and `format_correct`, as VAGEN reads them."""
        observation, reward, terminated, truncated, info = self.env.step(action_str)
        facts = {**info, "truncated": truncated, "format_correct": info["vlgym"]["parse"] == "ok"}
        return _show(observation, info), float(reward), terminated or truncated, facts

    async def close(self) -> None:
        self.env.close()


def _show(observation: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    picture = PILImage.fromarray(observation["image"])
    return {"obs_str": MARK + _plain(info["vlgym"]["turn_text"]), "multi_modal_input": {MARK: [picture]}}


def _plain(text: str) -> str:
    """Return a text without VAGEN's marks: it refuses one that has no picture."""
    return text.replace(MARK, "(image)").replace("<video>", "(video)")

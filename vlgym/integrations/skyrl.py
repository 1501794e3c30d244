"""SkyRL: an environment for its generator of vision-language models, and rows of a data set.

    from skyrl_gym.envs import register

    register(id="vlgym", entry_point="vlgym.integrations.skyrl:Game")

A row's columns name the episode, and its prompt is a placeholder: `init` returns picture and text.
All pictures stay in the context. SkyRL calls environments from several threads unless
`max_env_workers` is 0. Seen with skyrl-gym 0.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv

from ..endpoint.messages import encode_turn
from ..errors import UserError
from ..registry.making import make
from .agent import Task, tasks

Messages = list[dict[str, Any]]  # of chat completions, with data URLs


class Game(BaseTextEnv):
    """The episode of a row's columns `extras`, which ends at SkyRL's `generator.max_turns`, too."""

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        if not extras or "env_id" not in extras:
            raise UserError(
                "A row for SkyRL needs the column env_id; vlgym.integrations.skyrl.make_rows writes such rows."
            )
        self.task = Task.from_row(extras)
        self.max_turns = extras.get("max_turns")
        self.env = make(self.task.env_id, **self.task.arguments)
        self.success = False

    def init(self, prompt: Messages) -> tuple[Messages, dict[str, Any]]:
        """Begin the episode; the row's prompt is not shown."""
        observation, _ = self.env.reset(seed=self.task.seed)
        self.turns, self.success = 0, False
        return [encode_turn(observation["image"], observation["text"])], {"seed": self.task.seed}

    def step(self, action: str) -> dict[str, Any]:
        """Play a reply; the next observation is a user message, or none at the end."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.turns += 1
        self.success = bool(info["success"])
        spent = self.max_turns is not None and self.turns >= self.max_turns
        done = terminated or truncated or spent
        shown = [] if done else [encode_turn(observation["image"], info["vlgym"]["turn_text"])]
        metadata = {"success": self.success, "terminated": terminated, "truncated": done and not terminated}
        return {"observations": shown, "reward": float(reward), "done": done, "metadata": metadata}

    def close(self) -> None:
        self.env.close()

    def get_metrics(self) -> dict[str, Any]:
        """Success and turns of the episode, which SkyRL averages."""
        return {"success": float(self.success), "turns": self.turns}


def make_rows(
    env_id: str, episodes: int, *, split: str = "train", first: int = 0, **arguments: Any
) -> list[dict[str, Any]]:
    """Return rows of SkyRL's data set, one for each episode, as of `tasks`."""
    common = {"prompt": [{"role": "user", "content": ""}], "env_class": "vlgym"}
    chosen = tasks(env_id, split, episodes, first=first, **arguments)
    return [{**common, **task.to_row()} for task in chosen]

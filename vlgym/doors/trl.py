"""TRL's GRPOTrainer: an environment for its `environment_factory`, and rows that say which episodes are played.

    from trl import GRPOConfig, GRPOTrainer
    from vlgym.doors.trl import make_factory, make_rows

    trainer = GRPOTrainer(
        model, args=GRPOConfig("runs/grpo", max_steps=100), train_dataset=Dataset.from_list(make_rows(ENV, 64)),
        environment_factory=make_factory(ENV),
    )

TRL lets a model act by calling tools. There is one here, `act`, whose argument is the reply that the environment reads:
free text, as everywhere. So an episode is what `gymnasium.make(ENV)` plays for the same seed and replies. The model's
chat template must know tools (Qwen3-VL's does). TRL calls its interface experimental; seen with TRL 1.16.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from PIL import Image as PILImage

from ..env import VLEnv
from ..env.seeding import SPLITS, episode_seed
from ..errors import UserError, check_choice, check_number
from ..registry.making import make

HOW = "Act by calling the tool `act`; its argument is your whole reply."

Blocks = list[dict[str, Any]]
"""Parts of a message: `{"type": "image", "image": PIL image}` and `{"type": "text", "text": str}`."""


class Game:
    """One environment as TRL takes it: `reset`, the tool `act`, and `get_reward`.

    Args:
        env: the environment; this object closes it.

    Attributes:
        total: sum of the rewards of the episode so far.
        over: whether the episode has ended.
        success: whether it has succeeded.
        seed: of the episode.
        replies: so far, in their order.
    """

    def __init__(self, env: VLEnv) -> None:
        self._env = env
        weakref.finalize(self, env.close)  # TRL closes nothing
        self.total, self.over, self.success = 0.0, True, False
        self.seed: int | None = None
        self.replies: list[str] = []

    def reset(self, seed: int | None = None, **row: Any) -> Blocks:
        """Begin the episode of a seed; TRL passes a row of the data set, the rest of which is not read."""
        observation, _ = self._env.reset(seed=seed)
        self.total, self.over, self.success = 0.0, False, False
        self.seed, self.replies = seed, []
        return [*_show(observation), {"type": "text", "text": f"\n{HOW}"}]

    def act(self, reply: str) -> Blocks:
        """
        Reply to what you see.

        Args:
            reply: Your whole reply, with the action in the form that the text asks for.

        Returns:
            What you see next.
        """
        if self.over:
            raise UserError("The episode is over; there is nothing more to do.")
        observation, reward, terminated, truncated, info = self._env.step(str(reply))
        self.total += float(reward)
        self.replies.append(str(reply))
        self.over, self.success = terminated or truncated, bool(info["success"])
        if self.over:
            return [{"type": "text", "text": "The episode is over."}]
        return _show(observation)

    def get_reward(self) -> float:
        """The return of the episode, as far as it was played."""
        return self.total


def make_factory(env_id: str, **arguments: Any) -> Callable[[], Game]:
    """Return what `GRPOTrainer(environment_factory=...)` takes.

    Raises:
        UserError: the id cannot be made, or an argument is wrong; it is made once to see.
    """
    make(env_id, **arguments).close()

    def factory() -> Game:
        return Game(make(env_id, **arguments))

    return factory


def make_rows(env_id: str, episodes: int, *, split: str = "train", first: int = 0) -> list[dict[str, Any]]:
    """Return rows of a data set, one for each episode: an empty prompt, which the environment fills, and its seed.

    >>> make_rows("vlgym/NumberLine-v1", 1)[0]["prompt"]
    [{'role': 'user', 'content': ''}]
    """
    check_number("episodes", episodes, 1)
    check_number("first", first, 0)
    check_choice("split", split, SPLITS)
    prompt = [{"role": "user", "content": ""}]
    return [{"prompt": prompt, "seed": episode_seed(env_id, split, first + index)} for index in range(episodes)]


def _show(observation: dict[str, Any]) -> Blocks:
    picture = PILImage.fromarray(observation["image"])
    return [{"type": "image", "image": picture}, {"type": "text", "text": observation["text"]}]

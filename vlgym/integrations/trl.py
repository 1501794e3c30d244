"""TRL's GRPOTrainer: an environment for its `environment_factory`, and rows that say which episodes are played.

    from trl import GRPOConfig, GRPOTrainer
    from vlgym.integrations.trl import log_episodes, make_factory, make_rows

    trainer = GRPOTrainer(
        model, args=GRPOConfig("runs/grpo", max_steps=100), train_dataset=Dataset.from_list(make_rows(ENV, 64)),
        environment_factory=make_factory(ENV), reward_funcs=log_episodes,
    )

TRL lets a model act by calling tools. There is one here, `act`, whose argument is the action, or the whole reply where
the environment reads a plan, code or a notation. An episode is what `gymnasium.make(ENV)` plays for the same seed and
actions. TRL gives its environments to every reward function; `turns` of each has a row for each turn. The model's chat
template must know tools (Qwen3-VL's does). TRL calls its interface experimental; seen with TRL 1.16.
"""

from __future__ import annotations

import importlib.util
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from PIL import Image as PILImage

from ..env import VLEnv
from ..env.seeding import SPLITS, episode_seed
from ..errors import NotInstalledError, UserError, check_choice, check_number
from ..parsers import AutoParser
from ..registry import get_registry
from ..registry.installing import how_to_install
from ..registry.making import make
from ..types import Match, Parsed
from .turn_rows import TurnRow, make_row, measure_rows

HOW = "Act by calling the tool `act`; its argument is your whole reply."

TRL_MODULES = ("trl", "torchvision")
"""Modules of the extra `vlgym[trl]`; without torchvision TRL's processors take no pictures."""

Blocks = list[dict[str, Any]]
"""Parts of a message: `{"type": "image", "image": PIL image}` and `{"type": "text", "text": str}`."""


class ActionParser(AutoParser):
    """Reads the argument of a tool call as the action: no tag or JSON stands inside the call's own JSON."""

    name = "tool"
    version = 2

    def parse(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> Parsed:
        """Return what `auto` reads, else the whole text, or failure `no_action`, `ambiguous`, `illegal_action`."""
        parsed = super().parse(text, legal, matches)
        whole = text.strip()
        if whole and (parsed.form == "bare" or parsed.failure == "no_action"):
            return Parsed(parsed.actions or (whole,))
        return parsed

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        return actions[-1] if actions else ""

    def describe(self) -> str:
        return "Think briefly, then call the tool `act` with ACTION, which is one of the legal actions."


class TrlGame:
    """One environment as TRL takes it: `reset`, the tool `act`, and `get_reward`.

    Args:
        env: the environment; this object closes it.

    Attributes:
        turns: a row for each reply (see `turn_rows`).
    """

    def __init__(self, env: VLEnv) -> None:
        self._env = env
        weakref.finalize(self, env.close)  # TRL closes nothing
        self.total, self.over, self.success = 0.0, True, False
        self.seed: int | None = None
        self.replies: list[str] = []
        self.turns: list[TurnRow] = []

    def reset(self, seed: int | None = None, **row: Any) -> Blocks:
        """Begin the episode of a seed; TRL passes a row of the data set, the rest of which is not read."""
        observation, _ = self._env.reset(seed=seed)
        whole = [] if isinstance(self._env.parser, ActionParser) else [{"type": "text", "text": f"\n{HOW}"}]
        self.total, self.over, self.success = 0.0, False, False
        self.seed, self.replies, self.turns = seed, [], []
        return [*_show(observation, observation["text"]), *whole]

    def act(self, reply: str) -> Blocks:
        """
        Act on what you see.

        Args:
            reply: What the text asks for: one action, or a whole reply.

        Returns:
            What you see next.
        """
        if self.over:
            raise UserError("The episode is over; there is nothing more to do.")
        observation, reward, terminated, truncated, info = self._env.step(str(reply))
        self.total += float(reward)
        self.replies.append(str(reply))
        self.turns.append(make_row(reward, info))
        self.over, self.success = terminated or truncated, bool(info["success"])
        if self.over:
            return [{"type": "text", "text": "The episode is over."}]
        return _show(observation, info["vlgym"]["turn_text"])

    def get_reward(self) -> float:
        """The return of the episode, as far as it was played."""
        return self.total


def log_episodes(*, environments: Sequence[Any], log_metric: Callable[[str, float], None], **_: Any) -> list[None]:
    """Log the means of `success` and `invalid_turns`: a reward function for TRL, which rewards nothing."""
    for rows in (each.turns for each in environments if isinstance(each, TrlGame)):
        for name, value in measure_rows(rows).items():
            log_metric(name, value)
    return [None] * len(environments)


def make_factory(env_id: str, **arguments: Any) -> Callable[[], TrlGame]:
    """Return what `GRPOTrainer(environment_factory=...)` takes.

    Raises:
        UserError: TRL is not installed, the id cannot be made, or an argument is wrong; it is made once to see.
    """
    for module in TRL_MODULES:
        if importlib.util.find_spec(module) is None:
            raise NotInstalledError(f"TRL needs {module}, which is not installed: {how_to_install('vlgym[trl]')}")
    if get_registry().get(env_id).reply_styles[0] in ("auto", "tag", "json") and arguments.get("planner") != "global":
        arguments = {"parser": ActionParser(), **arguments}
    make(env_id, **arguments).close()

    def factory() -> TrlGame:
        return TrlGame(make(env_id, **arguments))

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


def _show(observation: dict[str, Any], text: str) -> Blocks:
    return [{"type": "image", "image": PILImage.fromarray(observation["image"])}, {"type": "text", "text": text}]

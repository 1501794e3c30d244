"""TRL's GRPOTrainer: an environment for its `environment_factory`, and rows of a data set.

    from trl import GRPOConfig, GRPOTrainer
    from vlgym.integrations.trl import log_episodes, make_factory, make_rows

    trainer = GRPOTrainer(
        model, args=GRPOConfig("runs/grpo", max_steps=100), reward_funcs=log_episodes,
        train_dataset=Dataset.from_list(make_rows(ENV, 64)), environment_factory=make_factory(ENV),
    )

TRL lets a model act by calling tools. There is one here, `act`, whose argument is the action, or
the whole reply where the environment reads a plan, code or a notation. An episode equals that of
`gymnasium.make(ENV)` for the same seed and actions. TRL gives its environments to every reward
function; `turns` of each has a row for each turn. The model's chat template must know tools
(Qwen3-VL's does). TRL calls its interface experimental; seen with TRL 1.16.
"""

from __future__ import annotations

import importlib.util
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..env import VLEnv
from ..env.seeding import SPLITS, episode_seed
from ..errors import NotInstalledError, UserError, check_choice, check_number
from ..parsers import AutoParser
from ..registry import get_registry
from ..registry.installing import how_to_install
from ..registry.making import make
from ..types import Match, Parsed
from .turn_rows import TurnRow, make_row, measure_rows, show_turn

HOW = "Act by calling the tool `act`; its argument is your whole reply."

TRL_MODULES = ("trl", "torchvision")  # without torchvision TRL's processors take no pictures
Blocks = list[dict[str, Any]]  # parts of a message, as of `show_turn`


class ActionParser(AutoParser):
    """Reads the argument of a tool call, which has no tag or JSON in it, as the action."""

    name = "tool"
    version = 2

    def parse(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> Parsed:
        """Read as `auto` does; a text without an action is the action."""
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
    """One environment as TRL takes it; `turns` has a row for each reply (see `turn_rows`)."""

    def __init__(self, env: VLEnv) -> None:
        self._env = env
        weakref.finalize(self, env.close)  # TRL closes nothing
        self._begin(None)
        self.over = True

    def _begin(self, seed: int | None) -> None:
        self.seed, self.total, self.over, self.success = seed, 0.0, False, False
        self.replies: list[str] = []
        self.turns: list[TurnRow] = []

    def reset(self, seed: int | None = None, **row: Any) -> Blocks:
        """Begin the episode of a seed; other columns of TRL's row are not read."""
        observation, _ = self._env.reset(seed=seed)
        self._begin(seed)
        blocks = show_turn(observation["image"], observation["text"])
        if not isinstance(self._env.parser, ActionParser):
            blocks.append({"type": "text", "text": f"\n{HOW}"})
        return blocks

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
        return show_turn(observation["image"], info["vlgym"]["turn_text"])

    def get_reward(self) -> float:
        """Return the rewards of the episode so far, summed."""
        return self.total


def log_episodes(*, environments: Sequence[Any], log_metric: Callable[[str, float], None], **_: Any) -> list[None]:
    """Log the means of `success` and `invalid_turns`: TRL calls it as a reward function."""
    for rows in (each.turns for each in environments if isinstance(each, TrlGame)):
        for name, value in measure_rows(rows).items():
            log_metric(name, value)
    return [None] * len(environments)


def make_factory(env_id: str, **arguments: Any) -> Callable[[], TrlGame]:
    """Return the argument `environment_factory` of `GRPOTrainer`.

    Raises:
        UserError: TRL is not installed, the id cannot be made, or an argument is wrong.
    """
    for module in TRL_MODULES:
        if importlib.util.find_spec(module) is None:
            command = how_to_install("vlgym[trl]")
            raise NotInstalledError(f"TRL needs {module}, which is not installed: {command}")
    style = get_registry().get(env_id).reply_styles[0]
    if style in ("auto", "tag", "json") and arguments.get("planner") != "global":
        arguments = {"parser": ActionParser(), **arguments}
    make(env_id, **arguments).close()  # a wrong argument is an error before anything is trained
    return lambda: TrlGame(make(env_id, **arguments))


def make_rows(env_id: str, episodes: int, *, split: str = "train", first: int = 0) -> list[dict[str, Any]]:
    """Return rows of a data set: an episode's seed, and a prompt that the environment fills.

    >>> make_rows("vlgym/NumberLine-v1", 1)[0]["prompt"]
    [{'role': 'user', 'content': ''}]
    """
    check_number("episodes", episodes, 1)
    check_number("first", first, 0)
    check_choice("split", split, SPLITS)
    prompt = [{"role": "user", "content": ""}]
    numbers = range(first, first + episodes)
    return [{"prompt": prompt, "seed": episode_seed(env_id, split, number)} for number in numbers]

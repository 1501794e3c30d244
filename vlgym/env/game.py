"""Game: the part of an environment that an author writes. `VLEnv` calls these methods."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..parsers import match_legal
from ..types import Image, Outcome, Parser
from .prompts import PromptTemplate
from .reset_options import ResetOption
from .spaces import clean_text


class Game:
    """The rules and the picture of one environment.

    Attributes:
        prompt: of the class: the texts that the model reads.
        reset_options: of the class: name -> an option that `reset` takes; all others are refused.
        level_arguments: of the class: for each level, 0 the easiest, attributes and their values in
            an episode of it, set before `start`. `max_turns` may be one of them, `image_size` not.
        notation: of the class: how actions are written, where a list of the legal ones would tell
            what the picture shows. The text has this line instead of the list, and info lists none.
        parser: reads the replies.
        instructions: what the prompt of this episode says once.
        step_cost: cost of every step, and of a reply that cannot be read (reward units, `>= 0`).
        system_turn: a system message tells the rules, and the first user message only the reply
            format; by default both stand at the top of the first user message.
    """

    prompt: ClassVar[PromptTemplate]
    reset_options: ClassVar[Mapping[str, ResetOption]] = {}
    level_arguments: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    notation: ClassVar[str] = ""
    step_cost: float = 0.0
    system_turn: bool = False
    parser: Parser
    instructions: str

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Begin an episode. All randomness comes from `rng` (which is `self.np_random`).

        `options` holds the values given to `reset`, as the declared `reset_options` convert them.
        """
        raise TypeError(f"{type(self).__name__} must define start()")

    def act(self, action: str) -> Outcome:
        """Execute one legal action."""
        raise TypeError(f"{type(self).__name__} must define act()")

    def natural_size(self) -> tuple[int, int] | None:
        """Return the image size `(height, width)` that arguments ask for; `None`: the spec's.

        The constructor asks, so set what this reads before `super().__init__()`.
        """
        return None

    def resolve_arguments(self) -> dict[str, Any]:
        """Return name -> value in force of arguments that leave it open, such as `auto`."""
        return {}

    def image(self) -> Image:
        """Draw the current state: a fresh `[H, W, 3] uint8` array of `self.image_size`."""
        raise TypeError(f"{type(self).__name__} must define image()")

    def describe(self) -> str:
        """Return the picture in words, and nothing more, for play without it; empty: unwritten."""
        return ""

    def task(self) -> str:
        """The goal of this episode in words, for the instructions."""
        raise TypeError(f"{type(self).__name__} must define task()")

    def state_text(self) -> str:
        """Return the turn text about the state that the image does not show; may be empty."""
        return ""

    def legal_actions(self) -> list[str]:
        """Actions that the model may choose now, as it should write them."""
        raise TypeError(f"{type(self).__name__} must define legal_actions()")

    def match_action(self, wanted: str) -> str | None:
        """Return the action that the candidate `wanted` means, or `None` if it is illegal now.

        By default one of `legal_actions()`, case and white space aside. Environments with open
        actions (`search[...]`) override it.
        """
        return match_legal(wanted, self.legal_actions())

    def point_action(self, x: float, y: float) -> str | None:
        """Return the action that a click on the picture means now, or `None`.

        Args:
            x: share of the picture's width, from the left, in [0, 1).
            y: share of its height, from the top.
        """
        return None

    @property
    def system_text(self) -> str:
        """The instructions before the reply format where `system_turn` is set; else empty."""
        if not self.system_turn:
            return ""
        return self.instructions.partition(clean_text(self.parser.describe()))[0].strip()

    def success(self) -> bool:
        """True if the task is solved, by the spec's success rule."""
        raise TypeError(f"{type(self).__name__} must define success()")

    def oracle(self) -> str | None:
        """The oracle's next action, or `None` (no oracle, or unsolvable from here)."""
        return None

    def think(self, action: str) -> str:
        """The thoughts that the oracle writes before `action`, for supervised warm starts."""
        return ""

    def score(self) -> float | None:
        """The benchmark's own score of the episode so far, where one exists."""
        return None

    def extra_info(self) -> dict[str, Any]:
        """Fresh plain values that are merged into `info`."""
        return {}

    def save(self) -> dict[str, Any] | None:
        """Return the episode's state as JSON-able data; `None`, the default: it is replayed."""
        return None

    def load(self, state: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        raise TypeError(f"{type(self).__name__} defines save() but not load()")

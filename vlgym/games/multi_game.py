"""MultiGame: what an author of a game of several agents writes, each part with its default. `MultiVLEnv` calls these
methods; they know nothing of models, prompts or who plays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..types import Image

PLAYERS = ("random", "oracle", "search")
"""Players that every game with an oracle brings itself."""


@dataclass(frozen=True)
class Round:
    """Result of one round: one move of one seat, or one move of each seat that moves at once.

    Attributes:
        rewards: of every seat, by its number (reward units of the game).
        terminated: the game is over by its rules.
        truncated: a limit ended it; the turn limit is the base class's business.
        feedback: one line for `info["vlgym"]["feedback"]`; say nothing that a seat may not know.
    """

    rewards: tuple[float, ...]
    terminated: bool = False
    truncated: bool = False
    feedback: str = ""


class MultiGame:
    """The rules of one game, and what each seat sees of it. Seats are numbered from 0.

    Attributes:
        seats: how many agents play: of the class, or of an instance that sets it before `super().__init__()`.
        zero_sum: of the class: the rewards of every round add up to 0.
        symmetric: of the class: the rules are the same for every seat; `mirror` is defined.
        at_once: of the class: every seat moves in every round.
        hidden_information: of the class: a seat does not see all; `redeal` is defined.
        named_players: of the class: the players that the game brings itself; `ask_player` answers for them.
    """

    seats: int = 2
    zero_sum: ClassVar[bool] = False
    symmetric: ClassVar[bool] = False
    at_once: ClassVar[bool] = False
    hidden_information: ClassVar[bool] = False
    named_players: ClassVar[tuple[str, ...]] = PLAYERS

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Begin a game. Keep `rng` for chance during the game; there is no other source of it.

        Args:
            rng: a generator of this game's own.
            options: what the declared `reset_options` made of the values that were given.
        """
        raise TypeError(f"{type(self).__name__} must define deal()")

    def movers(self) -> tuple[int, ...]:
        """The seats that move now: one, or several that move at once; none when the game is over."""
        raise TypeError(f"{type(self).__name__} must define movers()")

    def moves(self, seat: int) -> list[str]:
        """The legal actions of a seat that moves now, as it should write them; at least one."""
        raise TypeError(f"{type(self).__name__} must define moves()")

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        """Execute one legal action of every seat that moves now."""
        raise TypeError(f"{type(self).__name__} must define make_moves()")

    def draw(self, seat: int) -> Image:
        """Draw what this seat sees: a fresh `[H, W, 3] uint8` array of `self.image_size`."""
        raise TypeError(f"{type(self).__name__} must define draw()")

    def goal(self, seat: int) -> str:
        """The rules and this seat's goal in words, for its instructions; the same all game long."""
        raise TypeError(f"{type(self).__name__} must define goal()")

    def tell(self, seat: int) -> str:
        """Return the part of this seat's turn text that the image does not show; may be empty."""
        return ""

    def describe_view(self, seat: int) -> str:
        """As `Game.describe`, of what this seat sees."""
        return ""

    def won(self, seat: int) -> bool:
        """True if this seat has succeeded, by the spec's success rule."""
        raise TypeError(f"{type(self).__name__} must define won()")

    def idle(self, seat: int) -> str | None:
        """Return the legal action that does nothing; `None` if the game has none.

        It replaces an unreadable reply where others do not wait. Without one, a random legal action does.
        """
        return None

    def advise(self, seat: int) -> str | None:
        """The oracle's action for a seat that moves now. The same each time it is asked in one state."""
        return None

    def search(self, seat: int) -> str | None:
        """The action of a player that searches, where that is another one than the oracle."""
        return self.advise(seat)

    def ask_player(self, player: str, seat: int) -> str | None:
        """Return the action of one of `named_players` for a seat that moves now; `None` stands for a random one.

        A game with further players answers for them and calls this for the others.
        """
        return {"oracle": self.advise, "search": self.search}[player](seat) if player != "random" else None

    def explain(self, seat: int, action: str) -> str:
        """The line of thoughts that the oracle writes before its action."""
        return ""

    def points(self, seat: int) -> float | None:
        """The game's own score of a seat so far, where one exists."""
        return None

    def details(self, seat: int) -> dict[str, Any]:
        """Fresh plain values that are merged into this seat's `info`."""
        return {}

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        """Replace what is hidden from a seat by something else that fits all it has seen; return whether anything
        changed.

        Only the conformance kit asks, and it plays no further.
        """
        raise TypeError(f"{type(self).__name__} declares hidden_information and must define redeal()")

    def mirror(self) -> None:
        """Turn a game that has just begun into the same one with the seats in reverse order. Only the conformance kit
        asks."""
        raise TypeError(f"{type(self).__name__} declares symmetric and must define mirror()")

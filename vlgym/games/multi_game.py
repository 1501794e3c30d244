"""MultiGame, the methods of an author of a game of several agents; `MultiVLEnv` calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..types import Image

PLAYERS = ("random", "oracle", "search")  # of every game with an oracle


@dataclass(frozen=True)
class Round:
    """Result of one round: one move of one seat, or one move of each seat that moves at once.

    Attributes:
        rewards: of every seat, by its number.
        terminated: the game is over by its rules.
        truncated: a limit of the game ended it; the base class knows the turn limit.
        feedback: one line for `info["vlgym"]["feedback"]`; say nothing that a seat may not know.
    """

    rewards: tuple[float, ...]
    terminated: bool = False
    truncated: bool = False
    feedback: str = ""


class MultiGame:
    """The rules of one game, and what each seat sees of it. Seats are numbered from 0.

    Attributes:
        seats: number of agents: of the class, or set before `super().__init__()`.
        zero_sum: the rewards of every round add up to 0.
        symmetric: the rules are the same for every seat; `mirror` is defined.
        at_once: every seat moves in every round.
        hidden_information: a seat does not see all; `redeal` is defined.
        named_players: the game's own players; `ask_player` answers for them.
    """

    seats: int = 2
    zero_sum: ClassVar[bool] = False
    symmetric: ClassVar[bool] = False
    at_once: ClassVar[bool] = False
    hidden_information: ClassVar[bool] = False
    named_players: ClassVar[tuple[str, ...]] = PLAYERS

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Begin a game with the values of the declared `reset_options`.

        Keep `rng` for chance during the game; there is no other source of it.
        """
        raise TypeError(f"{type(self).__name__} must define deal()")

    def movers(self) -> tuple[int, ...]:
        """Return the seats that move now, several at once; none when the game is over."""
        raise TypeError(f"{type(self).__name__} must define movers()")

    def moves(self, seat: int) -> list[str]:
        """Return the legal actions of a seat that moves now, as it should write them; at least one."""
        raise TypeError(f"{type(self).__name__} must define moves()")

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        """Execute one legal action of every seat that moves now."""
        raise TypeError(f"{type(self).__name__} must define make_moves()")

    def draw(self, seat: int) -> Image:
        """Draw this seat's view: a fresh `[H, W, 3] uint8` array of `self.image_size`."""
        raise TypeError(f"{type(self).__name__} must define draw()")

    def goal(self, seat: int) -> str:
        """Return the rules and this seat's goal in words; the same in all of a game."""
        raise TypeError(f"{type(self).__name__} must define goal()")

    def tell(self, seat: int) -> str:
        """Return the part of this seat's turn text that the image does not show; may be empty."""
        return ""

    def describe_view(self, seat: int) -> str:
        """Return this seat's view in words, as `Game.describe`."""
        return ""

    def won(self, seat: int) -> bool:
        """True if this seat has succeeded, by the spec's success rule."""
        raise TypeError(f"{type(self).__name__} must define won()")

    def idle(self, seat: int) -> str | None:
        """Return the legal action that does nothing and replaces an unreadable reply, or `None`."""
        return None

    def advise(self, seat: int) -> str | None:
        """Return the oracle's action for a seat that moves now; one state has one answer."""
        return None

    def search(self, seat: int) -> str | None:
        """Return the action of a player that searches, where that is not the oracle."""
        return self.advise(seat)

    def ask_player(self, player: str, seat: int) -> str | None:
        """Return the action of one of `named_players` for a seat that moves; `None` is a random one.

        A game with further players answers for them and calls this for the others.
        """
        if player == "random":
            return None
        return self.advise(seat) if player == "oracle" else self.search(seat)

    def explain(self, seat: int, action: str) -> str:
        """Return the line of thoughts that the oracle writes before its action."""
        return ""

    def points(self, seat: int) -> float | None:
        """Return the game's own score of a seat so far, where one exists."""
        return None

    def details(self, seat: int) -> dict[str, Any]:
        """Return fresh plain values that are merged into this seat's `info`."""
        return {}

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        """Change the hidden state into another that fits a seat's view; return true if it changed.

        Only the conformance kit calls it, and plays no further.
        """
        raise TypeError(f"{type(self).__name__} declares hidden_information and must define redeal()")

    def mirror(self) -> None:
        """Put the seats of a game that has just begun in reverse order, for the conformance kit."""
        raise TypeError(f"{type(self).__name__} declares symmetric and must define mirror()")

"""The parts that games share: the layout of their prompts, and the base of those in which every seat acts in every
turn."""

from __future__ import annotations

from typing import ClassVar

from vlgym.env.prompts import PromptTemplate
from vlgym.games.multi import MultiVLEnv


def game_prompt(opening: str, version: int = 1) -> PromptTemplate:
    """Return the template that begins with a sentence."""
    return PromptTemplate(version, instructions=opening + " {task}\n{format}", turn="{state}Legal actions: {actions}")


class GameAtOnce(MultiVLEnv):
    """A game in which every seat chooses among `actions` at once; `stay` does nothing.

    Attributes:
        actions: of the class: the legal actions of every seat.
    """

    at_once: ClassVar[bool] = True
    actions: ClassVar[tuple[str, ...]]

    def movers(self) -> tuple[int, ...]:
        return tuple(range(self.seats))

    def moves(self, seat: int) -> list[str]:
        return list(self.actions)

    def idle(self, seat: int) -> str:
        return "stay"

"""The layout of prompts, and the base of games in which every seat acts in every turn."""

from __future__ import annotations

from typing import ClassVar

from vlgym.env.prompts import PromptTemplate
from vlgym.games.multi import MultiVLEnv


def game_prompt(opening: str, version: int = 1) -> PromptTemplate:
    """Return the template that begins with a sentence."""
    instructions, turn = opening + " {task}\n{format}", "{state}Legal actions: {actions}"
    return PromptTemplate(version, instructions=instructions, turn=turn)


class GameAtOnce(MultiVLEnv):
    """A game in which every seat chooses among `actions` at once; `stay` does nothing."""

    at_once: ClassVar[bool] = True
    actions: ClassVar[tuple[str, ...]]

    def movers(self) -> tuple[int, ...]:
        return tuple(range(self.seats))

    def moves(self, seat: int) -> list[str]:
        return list(self.actions)

    def idle(self, seat: int) -> str:
        return "stay"

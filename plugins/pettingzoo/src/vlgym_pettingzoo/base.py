"""The layout of prompts and pictures, and the base of games in which all act at once."""

from __future__ import annotations

from typing import ClassVar

from vlgym.env.prompts import PromptTemplate
from vlgym.games.multi import MultiVLEnv
from vlgym.types import Image

from .art import BLUE, GREEN, GREY, INK, PAPER, UNITS, WHITE, Canvas, Colour


def game_prompt(opening: str, version: int = 1) -> PromptTemplate:
    """Return the template that begins with a sentence."""
    instructions, turn = opening + " {task}\n{format}", "{state}Legal actions: {actions}"
    return PromptTemplate(version, instructions=instructions, turn=turn)


class PaintedGame(MultiVLEnv):
    """A game that paints on a canvas of the colour `ground`, with a bar of whose turn it is."""

    ground: ClassVar[Colour] = PAPER

    def draw(self, seat: int) -> Image:
        canvas, movers = Canvas(self.image_size, self.ground), self.movers()
        words = "your turn" if seat in movers else "not your turn" if movers else "the game is over"
        words = "all move at once" if len(movers) > 1 else words
        top, prefix = self.bar(seat)
        canvas.box(0, top, UNITS, 15, GREEN if seat in movers else GREY)
        canvas.text(prefix + words, UNITS / 2, top + 7.5, 12.5, WHITE, bold=0.3)
        self.paint(canvas, seat)
        return canvas.finish()

    def bar(self, seat: int) -> tuple[float, str]:
        """Return the bar's upper edge, in units, and the words before its own."""
        return 369, ""

    def paint(self, canvas: Canvas, seat: int) -> None:
        """Paint this seat's view."""
        raise NotImplementedError


class GameAtOnce(PaintedGame):
    """A game in which every seat chooses among `actions` at once; `stay` does nothing."""

    at_once: ClassVar[bool] = True
    actions: ClassVar[tuple[str, ...]]
    rounds: int  # turns that were played

    def ended(self) -> bool:
        """True if the game is over by its rules."""
        return False

    def movers(self) -> tuple[int, ...]:
        return () if self.ended() else tuple(range(self.seats))

    def moves(self, seat: int) -> list[str]:
        return list(self.actions)

    def idle(self, seat: int) -> str:
        return "stay"

    def draw_headline(self, canvas: Canvas, words: str, left: float, width: float) -> None:
        """Write a line at the top left, and the turns that are left with a bar of this width."""
        turns = max(0, self.max_turns - self.rounds)
        canvas.text(words, left, 17, 16, anchor="lm", bold=0.3)
        canvas.text(f"turns left: {turns}", 264, 17, 14, anchor="rm")
        canvas.box(270, 10, width, 14, WHITE, INK, 1)
        canvas.box(270, 10, width * turns / self.max_turns, 14, BLUE, INK, 1)

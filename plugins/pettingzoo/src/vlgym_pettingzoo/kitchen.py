"""A cooperative kitchen: two cooks make onion soup together, in the manner of Overcooked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from vlgym.errors import check_choice
from vlgym.multi import MultiVLEnv, Round
from vlgym.types import Image

from .art import BLUE, GREEN, GREY, INK, RED, WHITE, Canvas, Colour
from .kitchen_cook import choose
from .kitchen_rules import COOKING, LAYOUTS, ONIONS, STEPS, Kitchen
from .prompts import game_prompt

ENOUGH = 2
"""Soups of a game that count as success."""

_FLOOR, _COUNTER = (236, 226, 206), (150, 116, 84)
_ONION, _DISH, _SOUP = (232, 190, 80), (250, 250, 250), (214, 120, 40)


class KitchenPair(MultiVLEnv):
    """A kitchen: two cooks put onions into pots, wait, fill dishes with soup and serve them through the hatch.

    Goal: serve as many soups as possible. A soup needs three onions in one pot and six rounds on the fire; then a cook
        with a dish takes it and brings it to the hatch.
    Observation: the kitchen from above, with names on all things, both cooks with what they hold and where they
        look, and how far each pot is (448 x 448 pixels by default). The text does not tell where things are.
    Actions: `up`, `down`, `left`, `right` (look there, and step if there is free floor), `use` (the thing ahead:
        take an onion or a dish, fill a pot, take soup, serve, or put down and take up on a counter), `stay`. Both
        move at once.
    Reward: 1 for each soup served; both are paid.
    Endings: truncated after 80 turns of each.
    Success: at least 2 soups. `score` is the number of soups.
    Splits: train, val and test differ by seed: the layout, where the cooks begin, and the seat.
    Oracle: a planner: greedy cooks, which share the tasks and go the shortest ways. Default opponent: the same.
    References: Carroll et al., On the Utility of Learning about Humans for Human-AI Coordination, 2019 (Overcooked-AI).
        Rules, layouts, drawing, texts and the greedy cooks are this package's.

    Args:
        layout: `galley`, `island` or `long`; `None` draws one for each episode.
        **kwargs: of `MultiVLEnv`.
    """

    symmetric: ClassVar[bool] = True
    prompt = game_prompt("You are a cook.")

    def __init__(self, *, layout: str | None = None, **kwargs: Any) -> None:
        check_choice("layout", layout, (None, *LAYOUTS))
        self.layout = layout
        super().__init__(**kwargs)

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        drawn = list(LAYOUTS)[int(rng.integers(len(LAYOUTS)))]
        self.kitchen = Kitchen(self.layout or drawn, [(0, 0), (0, 0)], ["down", "down"])
        floor = self.kitchen.find(".")
        self.kitchen.places = [floor[int(place)] for place in rng.permutation(len(floor))[:2]]

    def movers(self) -> tuple[int, ...]:
        return (0, 1)

    def moves(self, seat: int) -> list[str]:
        return [*STEPS, "use", "stay"]

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        served = float(self.kitchen.play(moves))
        return Round((served, served))

    def idle(self, seat: int) -> str:
        return "stay"

    def goal(self, seat: int) -> str:
        return (
            f"You and another cook make onion soup. Bring {ONIONS} onions, one by one, to a pot; then it cooks for "
            f"{COOKING} turns. Take a dish, take the soup with it, and bring it to the hatch (SERVE): each soup "
            "earns 1 for both. You carry one thing at a time. up, down, left and right make you look that way, and "
            "step there if the floor is free. use does something with the thing that you look at. Both cooks move "
            f"at once and cannot pass through each other. There are {self.max_turns} turns. Serve as many soups as "
            "you can."
        )

    def won(self, seat: int) -> bool:
        return self.kitchen.served >= ENOUGH

    def points(self, seat: int) -> float | None:
        return float(self.kitchen.served)

    def details(self, seat: int) -> dict[str, Any]:
        return {"layout": self.kitchen.layout, "soups": self.kitchen.served}

    def advise(self, seat: int) -> str | None:
        return choose(self.kitchen, seat)

    def explain(self, seat: int, action: str) -> str:
        return f"I hold {self.kitchen.held[seat] or 'nothing'}, so {action}"

    def mirror(self) -> None:
        self.kitchen.places.reverse()
        self.kitchen.facing.reverse()
        self.kitchen.held.reverse()

    def draw(self, seat: int) -> Image:
        kitchen, canvas = self.kitchen, Canvas(self.image_size)
        rows, columns = len(LAYOUTS[kitchen.layout]), len(LAYOUTS[kitchen.layout][0])
        side = min(372 / columns, 330 / rows)
        left, top = (384 - side * columns) / 2, 36 + (340 - side * rows) / 2
        canvas.text(f"Soups served: {kitchen.served}", 12, 18, 19, anchor="lm", bold=0.4)
        canvas.text("you: blue   other: red", 372, 18, 16, GREY, "rm")
        for row in range(rows):
            for column in range(columns):
                self._draw_cell(canvas, (row, column), left + column * side, top + row * side, side)
        for cook in (0, 1):
            row, column = kitchen.places[cook]
            x, y = left + (column + 0.5) * side, top + (row + 0.5) * side
            self._draw_cook(canvas, cook, x, y, side, BLUE if cook == seat else RED)
        return canvas.finish()

    def _draw_cell(self, canvas: Canvas, cell: tuple[int, int], x: float, y: float, side: float) -> None:
        kitchen, kind = self.kitchen, self.kitchen.at(cell)
        if kind == ".":
            canvas.box(x, y, side, side, _FLOOR, (216, 204, 180), 1)
            return
        canvas.box(x, y, side, side, _COUNTER, (120, 90, 64), 1)
        middle, size = (x + side / 2, y + side / 2), side / 4.4
        if kind == "O":
            canvas.disc(*middle, side * 0.36, _ONION, INK, 1)
            canvas.text("onion", *middle, size, INK)
        elif kind == "D":
            canvas.disc(*middle, side * 0.38, _DISH, INK, 1)
            canvas.text("dish", *middle, size, INK)
        elif kind == "S":
            canvas.box(x + 2, y + 2, side - 4, side - 4, GREEN, WHITE, 2, 4)
            canvas.text("SERVE", *middle, size * 0.95, WHITE, bold=0.3)
        elif kind == "P":
            pot = kitchen.pots[cell]
            canvas.box(x + 3, y + 3, side - 6, side - 6, (70, 74, 84), INK, 2, 8)
            told = "READY" if pot.ready else f"{pot.cooked}/{COOKING}" if pot.full else f"{pot.onions}/{ONIONS}"
            canvas.text("pot", middle[0], middle[1] - side * 0.2, size * 0.9, WHITE)
            tint = _SOUP if pot.full else _ONION
            canvas.text(told, middle[0], middle[1] + side * 0.1, size, (120, 240, 140) if pot.ready else tint, bold=0.3)
            word = "" if pot.ready else "cooking" if pot.full else "onions"
            canvas.text(word, middle[0], middle[1] + side * 0.33, size * 0.72, WHITE)
        elif cell in kitchen.counters:
            self._draw_thing(canvas, kitchen.counters[cell], *middle, side * 0.3)

    def _draw_cook(self, canvas: Canvas, cook: int, x: float, y: float, side: float, tint: Colour) -> None:
        down, right = STEPS[self.kitchen.facing[cook]]
        reach = side * 0.48
        wide = side * 0.2
        tip = (x + right * reach, y + down * reach)
        canvas.shape([tip, (x + down * wide, y + right * wide), (x - down * wide, y - right * wide)], INK)
        canvas.disc(x, y, side * 0.36, tint, INK, 2)
        if self.kitchen.held[cook]:
            self._draw_thing(canvas, self.kitchen.held[cook], x, y, side * 0.25)

    def _draw_thing(self, canvas: Canvas, thing: str, x: float, y: float, radius: float) -> None:
        if thing == "onion":
            canvas.disc(x, y, radius, _ONION, INK, 1)
            canvas.text("o", x, y, radius * 1.1, INK)
            return
        canvas.disc(x, y, radius, _DISH, INK, 1)
        if thing == "soup":
            canvas.disc(x, y, radius * 0.72, _SOUP, None)
            canvas.text("s", x, y, radius * 1.1, WHITE)
        else:
            canvas.text("d", x, y, radius * 1.1, INK)

"""Probes of place and number: a side, a cell of a labelled grid, a number of discs."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .drawing import COLOURS, SHAPES, Canvas, fade
from .question import Question, choose

_GRID_LEFT, _GRID_TOP, _GRID = 0.16, 0.16, 0.81
_DARK = ("red", "green", "blue", "purple", "black")
_PAPER, _LINE = (244, 244, 238), (90, 90, 90)
_COLUMNS = "ABCDEFG"


def _count_to(most: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, most + 1))


def _name_cells(side: int) -> tuple[str, ...]:
    return tuple(f"{column}{row}" for column in _COLUMNS[:side] for row in _count_to(side))


class SeeSide(Question):
    """SeeSide: tell left from right.

    Goal: say in which half of the picture the shape is.
    Observation: a picture of 224 x 224 pixels with one shape well inside its left or its
        right half; shape, colour and place vary. The text is the same for every episode.
    Actions: `left`, `right`.
    Reward: 1 for the right half, else 0.
    Endings: terminated by the answer; an unreadable reply is the only turn, and truncates.
    Success: the right half. Guessing is right in half of the episodes.
    Info: `answer`, `given`. Splits differ by seed only. Oracle: exact.
    References: none; it is vlgym's own.
    """

    topic = "left and right"
    answers = ("left", "right")
    skipped = 2

    def task(self) -> str:
        return "It shows one shape. Is the shape in the left half of the picture or in the right half?"

    def draw_looks(self, rng: np.random.Generator) -> dict[str, Any]:
        edge, y = float(rng.uniform(0.16, 0.3)), float(rng.uniform(0.2, 0.8))
        return {"shape": choose(rng, SHAPES), "colour": choose(rng, _DARK), "edge": edge, "y": y}

    def image(self) -> NDArray[np.uint8]:
        canvas = Canvas(self.image_size, _PAPER)
        x = self.looks["edge"] if self.answer == "left" else 1 - self.looks["edge"]
        canvas.shape(self.looks["shape"], x, self.looks["y"], 0.13, COLOURS[self.looks["colour"]])
        return canvas.finish()


class SeeCount(Question):
    """SeeCount: count discs.

    Goal: say how many discs the picture shows.
    Observation: a picture of 224 x 224 pixels with one to six discs of one colour that do not
        touch; places and colour vary. The text is the same for every episode.
    Actions: `1` to `6`; on other levels up to `16`.
    Reward: 1 for the right number, else 0.
    Endings: terminated by the answer; an unreadable reply is the only turn, and truncates.
    Success: the right number. Guessing is right in 1 of 6 episodes.
    Info: `answer`, `given`. Splits differ by seed only. Oracle: exact.
    References: none; it is vlgym's own.

    Options of `reset`: `level`, 0 to 4.
    """

    topic = "counting"
    answers = tuple("123456")
    skipped = 350
    places: int = 4  # rows and columns in which discs stand
    shift: float = 0.03  # largest distance of a disc from its place, in shares of the shorter side
    radius: float = 0.08  # in shares of it
    level_arguments: ClassVar = (
        {"answers": _count_to(3)},
        {},
        {"answers": _count_to(9)},
        {"answers": _count_to(12), "places": 5, "radius": 0.06, "contrast": 0.5},
        {"answers": _count_to(16), "places": 6, "shift": 0.02, "radius": 0.05, "contrast": 0.35},
    )

    def task(self) -> str:
        return "It shows discs of one colour. How many discs are there?"

    def draw_looks(self, rng: np.random.Generator) -> dict[str, Any]:
        order = rng.permutation(self.places**2)[: len(self.answers)]
        shifts = rng.uniform(-self.shift, self.shift, size=(len(self.answers), 2))
        return {"order": order.tolist(), "shifts": shifts.tolist(), "colour": choose(rng, _DARK)}

    def image(self) -> NDArray[np.uint8]:
        canvas = Canvas(self.image_size, _PAPER)
        for number in range(int(self.answer)):
            row, column = divmod(self.looks["order"][number], self.places)
            dx, dy = self.looks["shifts"][number]
            x, y = (column + 0.5) / self.places + dx, (row + 0.5) / self.places + dy
            canvas.disc(x, y, self.radius, fade(COLOURS[self.looks["colour"]], _PAPER, self.contrast))
        return canvas.finish()


class SeeCell(Question):
    """SeeCell: find a mark in a labelled grid.

    Goal: say in which cell the mark stands.
    Observation: a picture of 224 x 224 pixels with a grid of 3 x 3 cells, letters A to C over
        its columns and digits 1 to 3 at its rows, and one mark; its shape and colour vary. The text is
        the same for every episode.
    Actions: `A1` to `C3`, column first; on other levels up to `G7`.
    Reward: 1 for the right cell, else 0.
    Endings: terminated by the answer; an unreadable reply is the only turn, and truncates.
    Success: the right cell. Guessing is right in 1 of 9 episodes.
    Info: `answer`, `given`. Splits differ by seed only. Oracle: exact.
    References: none; it is vlgym's own.

    Options of `reset`: `level`, 0 to 4.
    """

    topic = "cells of a grid"
    answers = _name_cells(3)
    skipped = 35
    side: int = 3  # cells of a row and of a column
    mark: float = 0.09  # radius, in shares of the shorter side
    label: float = 0.12  # font size of letters and digits, in shares of it
    level_arguments: ClassVar = (
        {"answers": _name_cells(2), "side": 2},
        {},
        {"answers": _name_cells(5), "side": 5, "mark": 0.055, "label": 0.08},
        {"answers": _name_cells(6), "side": 6, "mark": 0.045, "label": 0.07},
        {"answers": _name_cells(7), "side": 7, "mark": 0.04, "label": 0.065, "contrast": 0.35},
    )

    def task(self) -> str:
        return (
            "It shows a grid: letters over its columns, digits beside its rows. One cell holds a mark. "
            "Which cell is it, column first?"
        )

    def draw_looks(self, rng: np.random.Generator) -> dict[str, Any]:
        return {"shape": choose(rng, SHAPES), "colour": choose(rng, _DARK)}

    def image(self) -> NDArray[np.uint8]:
        canvas = Canvas(self.image_size, _PAPER)
        cell = _GRID / self.side
        far = _GRID_LEFT + self.side * cell
        for line in range(self.side + 1):
            at = line * cell
            canvas.area(_GRID_LEFT - 0.006, _GRID_TOP + at - 0.006, far + 0.006, _GRID_TOP + at + 0.006, _LINE)
            canvas.area(_GRID_LEFT + at - 0.006, _GRID_TOP - 0.006, _GRID_LEFT + at + 0.006, far + 0.006, _LINE)
            if line < self.side:
                middle = (line + 0.5) * cell
                canvas.centre(_COLUMNS[line], _GRID_LEFT + middle, _GRID_TOP / 2, self.label, COLOURS["black"])
                canvas.centre(str(line + 1), _GRID_LEFT / 2, _GRID_TOP + middle, self.label, COLOURS["black"])
        column, row = _COLUMNS.index(self.answer[0]), int(self.answer[1]) - 1
        x, y = _GRID_LEFT + (column + 0.5) * cell, _GRID_TOP + (row + 0.5) * cell
        colour = fade(COLOURS[self.looks["colour"]], _PAPER, self.contrast)
        canvas.shape(self.looks["shape"], x, y, self.mark, colour)
        return canvas.finish()

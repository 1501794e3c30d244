"""Probes of place and number: a side, a cell of a labelled grid, a number of discs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .drawing import COLOURS, SHAPES, Canvas
from .question import Question, choose

COLUMNS, ROWS = "ABC", "123"
_GRID_LEFT, _GRID_TOP, _CELL = 0.16, 0.16, 0.27
_PLACES = 4  # discs stand in that many rows and columns
_DARK = ("red", "green", "blue", "purple", "black")
_PAPER, _LINE = (244, 244, 238), (90, 90, 90)


class SeeSide(Question):
    """SeeSide: tell left from right.

    Goal: say in which half of the picture the shape is.
    Observation: a picture, 224 x 224 pixels by default, with one shape well inside its left or its right half; shape,
        colour and place within the half vary. The text is the same for every episode.
    Actions: `left`, `right`.
    Reward: 1 for the right half, else 0.
    Endings: terminated by the answer; an unreadable reply is the one turn there is, and truncates.
    Success: the right half. Guessing is right in half of the episodes.
    Info: `answer`, `given`.
    Splits: train, val and test differ by seed only.
    Oracle: exact.
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
    Observation: a picture, 224 x 224 pixels by default, with one to six discs of one colour that do not touch; places
        and colour vary. The text is the same for every episode.
    Actions: `1` to `6`.
    Reward: 1 for the right number, else 0.
    Endings: terminated by the answer; an unreadable reply is the one turn there is, and truncates.
    Success: the right number. Guessing is right in 1 of 6 episodes.
    Info: `answer`, `given`.
    Splits: train, val and test differ by seed only.
    Oracle: exact.
    References: none; it is vlgym's own.
    """

    topic = "counting"
    answers = tuple("123456")
    skipped = 350

    def task(self) -> str:
        return "It shows discs of one colour. How many discs are there?"

    def draw_looks(self, rng: np.random.Generator) -> dict[str, Any]:
        order = rng.permutation(_PLACES**2)[: len(self.answers)]
        shifts = rng.uniform(-0.03, 0.03, size=(len(self.answers), 2))
        return {"order": order.tolist(), "shifts": shifts.tolist(), "colour": choose(rng, _DARK)}

    def image(self) -> NDArray[np.uint8]:
        canvas = Canvas(self.image_size, _PAPER)
        for number in range(int(self.answer)):
            row, column = divmod(self.looks["order"][number], _PLACES)
            dx, dy = self.looks["shifts"][number]
            x, y = (column + 0.5) / _PLACES + dx, (row + 0.5) / _PLACES + dy
            canvas.disc(x, y, 0.08, COLOURS[self.looks["colour"]])
        return canvas.finish()


class SeeCell(Question):
    """SeeCell: find a mark in a labelled grid.

    Goal: say in which cell the mark stands.
    Observation: a picture, 224 x 224 pixels by default, with a grid of 3 x 3 cells, letters A to C over its columns and
        digits 1 to 3 at its rows, and one mark; its shape and colour vary. The text is the same for every episode.
    Actions: `A1` to `C3`, column first.
    Reward: 1 for the right cell, else 0.
    Endings: terminated by the answer; an unreadable reply is the one turn there is, and truncates.
    Success: the right cell. Guessing is right in 1 of 9 episodes.
    Info: `answer`, `given`.
    Splits: train, val and test differ by seed only.
    Oracle: exact.
    References: none; it is vlgym's own.
    """

    topic = "cells of a grid"
    answers = tuple(f"{column}{row}" for column in COLUMNS for row in ROWS)
    skipped = 35

    def task(self) -> str:
        return (
            "It shows a grid: letters over its columns, digits beside its rows. One cell holds a mark. "
            "Which cell is it, column first?"
        )

    def draw_looks(self, rng: np.random.Generator) -> dict[str, Any]:
        return {"shape": choose(rng, SHAPES), "colour": choose(rng, _DARK)}

    def image(self) -> NDArray[np.uint8]:
        canvas = Canvas(self.image_size, _PAPER)
        far = _GRID_LEFT + 3 * _CELL
        for line in range(4):
            at = line * _CELL
            canvas.box(_GRID_LEFT - 0.006, _GRID_TOP + at - 0.006, far + 0.006, _GRID_TOP + at + 0.006, _LINE)
            canvas.box(_GRID_LEFT + at - 0.006, _GRID_TOP - 0.006, _GRID_LEFT + at + 0.006, far + 0.006, _LINE)
            if line < 3:
                middle = (line + 0.5) * _CELL
                canvas.text(COLUMNS[line], _GRID_LEFT + middle, _GRID_TOP / 2, 0.12, COLOURS["black"])
                canvas.text(ROWS[line], _GRID_LEFT / 2, _GRID_TOP + middle, 0.12, COLOURS["black"])
        column, row = COLUMNS.index(self.answer[0]), ROWS.index(self.answer[1])
        x, y = _GRID_LEFT + (column + 0.5) * _CELL, _GRID_TOP + (row + 0.5) * _CELL
        canvas.shape(self.looks["shape"], x, y, 0.09, COLOURS[self.looks["colour"]])
        return canvas.finish()

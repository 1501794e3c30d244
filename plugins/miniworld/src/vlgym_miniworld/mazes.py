"""Mazes with the red box (Maze in four sizes, TMaze, YMaze), and Sign, where a sign names a colour."""

from typing import Any, ClassVar

import numpy as np

from vlgym.errors import check_choice

from .oracles import Goal, reach
from .starts import BoxTask
from .tasks import MOVES, MiniWorldTask


class Maze(BoxTask):
    """A maze of 3 x 3 m cells drawn by recursive backtracking.

    It has 8 x 8 cells (Maze), 2 x 2 (MazeS2) or 3 x 3 (MazeS3, MazeS3Fast).

    Goal: come near the red box (centres closer than both radii + 1.1 times the longest move).
    Observation: the robot's camera, 60 degrees of vertical view.
    Actions: turn left, turn right, move forward, by the degrees and metres that the text states.
    Reward: `1 - 0.2 t / T` on reaching the box at step t of T = `max_turns`, else 0.
    Endings: terminated on reaching the box; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """


class MazeS2(Maze): ...


class MazeS3(Maze): ...


class MazeS3Fast(Maze):
    level_arguments: ClassVar = tuple(
        {
            "layout": {"num_rows": side, "num_cols": side},
            "min_bearing": bearing, "min_distance": distance, "max_turns": turns,
        }
        for side, bearing, distance, turns in (
            (2, 0.0, 1.8, 30), (2, 45.0, 4.0, 40), (3, 45.0, 5.0, 60),
            (4, 45.0, 6.5, 100), (5, 45.0, 8.0, 150), (6, 45.0, 9.75, 200),
        )
    )  # fmt: skip


class TMaze(MiniWorldTask):
    """Hallways that meet in a T (TMaze) or a Y (YMaze), with a red box in one arm.

    It is the left one in TMazeLeft and YMazeLeft, the right one in TMazeRight and YMazeRight.

    Goal: come near the red box (centres closer than 1.15 m).
    Observation: the robot's camera, 60 degrees of vertical view; the robot starts in the stem,
        looking roughly at the junction.
    Actions: turn left, turn right (15 degrees), move forward (0.15 m).
    Reward: `1 - 0.2 t / T` on reaching the box at step t of T = `max_turns`, else 0.
    Endings: terminated on reaching the box; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """


class TMazeLeft(TMaze): ...


class TMazeRight(TMaze): ...


class YMaze(TMaze): ...


class YMazeLeft(YMaze): ...


class YMazeRight(YMaze): ...


class Sign(MiniWorldTask):
    """A U-shaped maze with a box and a key in each of blue, red and green.

    Goal: touch the one object of the colour that a sign on a wall names and the shape that the text
        names. The sign is round the corner, so it has to be looked for.
    Observation: the robot's camera, 60 degrees of vertical view; the instructions say "box" or "key".
    Actions: turn left, turn right (45 degrees), move forward (0.7 m), end episode (which also steps
        back 0.7 m, as in MiniWorld).
    Reward: +1 for the right object, -1 for any other, else 0. Touching means centres closer than
        0.4 m + radius + 0.77 m.
    Endings: terminated on touching an object or by "end episode"; truncated after `max_turns` turns.
    References: Liu et al. 2020, arXiv:2008.02790; Chevalier-Boisvert et al. 2023, arXiv:2306.13831.

    Args:
        shape: `"box"` or `"key"`; drawn for each episode by default. MiniWorld keeps box and blue;
            with these a seed gives its episode.
        color: `"blue"`, `"red"` or `"green"`; drawn for each episode by default.
    """

    SHAPES = ("box", "key")
    COLORS = ("blue", "red", "green")

    can_randomise = False
    actions = {**MOVES, "end episode": 3}  # noqa: RUF012 - declared ClassVar in the base

    def __init__(self, *, shape: str | None = None, color: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.fixed_shape = check_choice("shape", shape, (None, *self.SHAPES))
        self.fixed_color = check_choice("color", color, (None, *self.COLORS))

    def prepare(self, rng: np.random.Generator) -> None:
        # A draw that decides nothing would shift MiniWorld's own.
        shape = self.fixed_shape or rng.choice(self.SHAPES)
        color = self.fixed_color or rng.choice(self.COLORS)
        self.world._goal = self.SHAPES.index(shape)  # MiniWorld has a setter for the colour only
        self.world.set_color_index(self.COLORS.index(color))

    def aim(self) -> str:
        return f"the {self.SHAPES[self.world._goal]} in the color that the sign names"

    def task(self) -> str:
        return (
            "A sign on a wall names a color: blue, red or green. "
            f"Find the sign, then touch {self.aim()}. "
            f"Touching any other object ends the episode with a penalty. {self.steps_text()}"
        )

    def goal(self) -> Goal:
        """The right object, past the wrong ones; the oracle knows the colour without reading."""
        world = self.world
        right = world._objects[world._goal][world._color_index]
        wrong = [thing for pair in world._objects for thing in pair if thing is not right]
        return reach(world, right, avoid=wrong)

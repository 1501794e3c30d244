"""Sokoban after MageBench: push every box onto a target, seen as a picture."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.reset_options import ResetOption
from vlgym.errors import UserError, check_choice
from vlgym.parsers.headings import HeadingParser, HeadingPlanParser
from vlgym.types import Outcome

from .groups import LevelSource
from .level import DIRECTIONS, LETTERS, LONGEST_SOLUTION, STEP_PENALTY, Board, Level, score_of, to_tenths, upper_tenths
from .package import CELL_PIXELS, draw_board
from .solver import Guide

ONLINE_TURNS = 50  # MageBench's limit on replies of the Online planner
RESTART = "restart"

# Action words of each set: direction (or none), and whether a box ahead is pushed.
ACTION_SETS: dict[str, dict[str, tuple[str | None, bool]]] = {
    "push": {name: (name, True) for name in DIRECTIONS},
    "gym": {
        "no operation": (None, False),
        **{f"push {name}": (name, True) for name in DIRECTIONS},
        **{f"move {name}": (name, False) for name in DIRECTIONS},
    },
}


class Sokoban(VLEnv):
    """Sokoban: push every box onto a target.

    Goal: all boxes on targets, in as few steps as possible. Boxes can be pushed, one at a time,
        never pulled; some pushes cannot be undone.
    Observation: the room in gym-sokoban's sprites (brick walls, black floor, red targets, yellow
        boxes, a green player), 32 pixels a cell by default. With `info_text` the text counts the
        boxes on targets and names a blocked move; positions are in the picture only.
    Actions: `up`, `down`, `left`, `right`; all are always legal, and a blocked one costs its step.
        `restart=True` adds `restart`, which puts the level back to its start for one step.
        `action_set="gym"` offers the package's nine actions, of which four do not push.
    Reward: per step -0.1, +1 if more boxes are on targets than before, -1 if fewer, +10 if all are.
        A restart pays -0.1 and takes back 1 for each box that was on a target, so it earns nothing.
    Endings: terminated when all boxes are on targets; truncated after `max_turns` replies (50,
        MageBench's Online limit; under the Global planner `max_steps`) or `max_steps` steps (120,
        200 or 300).
    Success: all boxes are on targets.
    Score: `info["score"] = 100 + 5 (H - U)`. `H` is the best accumulated reward at any time (at
        least 0), `U = 10 + n - 0.1 L` that of the level's solution of `L` steps with `n` boxes.
        Doing nothing scores `100 - 5 U`, between 34 and 55. Solutions of drawn and shipped levels
        are shortest: 100 is the most.
    Info: `level` (title), `boxes`, `boxes_on_target`, `steps`, `solution_steps` (L), `best_reward`
        (H), `upper_reward` (U), and `unsolvable`: no solution exists from here (exact for 7 x 7
        cells; false where the proof needs more than 20,000 positions).
    Splits: a drawn room belongs to train, val or test by a hash of its walls, so splits share no
        room, neither with each other nor with the 182 shipped levels.
    Oracle: exact, from any position that has a solution (shortest in steps within 100,000 nodes of
        search).

    The rules are tested step by step against gym-sokoban 0.0.6. One departure, which no drawn or
    shipped level can show: a box that begins on a target pays nothing (the package pays +1 at the
    first step).

    References:
        MageBench, arXiv 2412.04531. gym-sokoban 0.0.6 (MIT licence, M.-P. Schrader). Rules and
        rooms: Racaniere et al., Imagination-Augmented Agents for Deep Reinforcement Learning,
        NeurIPS 2017.

    Args:
        group: one of the eight groups, `small-v0` (7x7, 2 boxes) to `huge-v0` (13x13, 5 boxes).
        level: number of a shipped level of the group, or `"any"`: the seed chooses among them; by
            default levels are drawn from the seed.
        level_file: path of an XSB file with other levels.
        rows: height of drawn rooms in cells, rim included (5 to 20); default the group's.
        columns: width of drawn rooms in cells (5 to 20).
        boxes: boxes in drawn rooms (1 to 6).
        gen_steps: length of the generator's random walk (5 to 200).
        min_solution: fewest steps of a drawn level's shortest solution.
        max_solution: most steps of a drawn level's shortest solution (50).
        max_steps: steps until truncation; default the group's.
        restart: whether `restart` is an action.
        action_set: `push` or `gym`.
        info_text: whether the text counts the boxes on targets and names blocked moves; by default
            it does, but for `protocol="magebench"`.
        protocol: `None`, or `"magebench"`: its reply headings (`vlgym.parsers.headings`), its names
            of actions (`Up`), its system turn, and no `info_text`.
        system_turn: whether a model gets the rules as a system message and the reply format in the
            first user message (`False` for models without a system role); default:
            `protocol="magebench"`.
        **kwargs: of `VLEnv`.

    Options of `reset`: `level`, the number of a shipped level (or of the file's).

    Raises:
        UserError: an argument is out of its range, a level file is bad, or gym-sokoban is not
            installed.
    """

    prompt = PromptTemplate(
        version=1,
        instructions="You are playing Sokoban. {task}\n{format}",
        turn="Turn {turn} of {max_turns}. {state}\nLegal actions: {actions}",
    )
    reset_options: ClassVar = {
        "level": ResetOption(
            "the level", "the number of a shipped level of the group, or of a level of the file, from 0",
            lambda env, value: env._source.pick(value), (-1, 0.5, True, "x", 10**6),
        )
    }  # fmt: skip

    _best = 0  # reward in tenths

    def __init__(
        self,
        *,
        group: str = "small-v0",
        level: int | str | None = None,
        level_file: str | None = None,
        rows: int | None = None,
        columns: int | None = None,
        boxes: int | None = None,
        gen_steps: int | None = None,
        min_solution: int = 1,
        max_solution: int = LONGEST_SOLUTION,
        max_steps: int | None = None,
        restart: bool = False,
        action_set: str = "push",
        info_text: bool | None = None,
        protocol: str | None = None,
        system_turn: bool | None = None,
        **kwargs: Any,
    ) -> None:
        check_choice("action_set", action_set, ACTION_SETS)
        plans = kwargs.get("planner") == "global"
        if check_choice("protocol", protocol, (None, "magebench")) and not kwargs.get("parser"):
            kwargs["parser"] = HeadingPlanParser() if plans else HeadingParser()
        if max_steps is not None and max_steps < 1:
            raise UserError(f"max_steps={max_steps!r} must be >= 1.")

        # Levels come first: picture and limits follow from their sizes.
        sizes = {"rows": rows, "columns": columns, "boxes": boxes, "gen_steps": gen_steps}
        self._source = source = LevelSource(group, level, level_file, sizes, min_solution, max_solution)
        self.rows, self.columns, self.boxes = source.rows, source.columns, source.boxes
        self.gen_steps = source.gen_steps
        self.max_steps = max_steps or source.max_steps
        if kwargs.get("max_turns") is None:
            kwargs["max_turns"] = self.max_steps if plans else ONLINE_TURNS
        super().__init__(**kwargs)
        self.step_cost = STEP_PENALTY if protocol is None else 0.0  # MageBench charges nothing
        self.info_text = protocol is None if info_text is None else info_text
        self.system_turn = protocol is not None if system_turn is None else system_turn

        # The published protocol writes action words with a capital.
        self.restart = restart
        self._actions = ACTION_SETS[action_set]
        if protocol is not None:
            self._actions = {word.capitalize(): meaning for word, meaning in self._actions.items()}
        self._legal = [*self._actions, *([RESTART] if restart else [])]
        self._words = {direction: word for word, (direction, push) in self._actions.items() if push}

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        chosen = options.get("level")
        self._begin_level(chosen or self._source.next_level(rng, self.seed_split or "train"))

    def act(self, action: str) -> Outcome:
        self._steps += 1
        level = self.board.level
        if action == RESTART:
            # Boxes that begin on a target were never paid for.
            reward = -STEP_PENALTY - self.board.on_target
            self._note = "The level was put back to its start. "
            self.board.place(level.player, level.boxes)
            reward += self.board.on_target
            self._guide.load(level.solution, False)
        else:
            direction, push = self._actions[action]
            move = self.board.move(level.step_of(direction) if direction else 0, push)
            reward, blocked = move.reward, direction is not None and not move.moved
            self._note = f"The last move, {action}, was blocked. " if blocked else ""
            if direction:
                self._guide.follow(self.board, direction[0], move)

        # The score keeps the best sum of rewards of the episode.
        self._total += to_tenths(reward)
        self._best = max(self._best, self._total)
        solved = self.board.solved
        late = not solved and self._steps >= self.max_steps
        return Outcome(reward, terminated=solved, truncated=late, feedback=self._note.strip())

    def natural_size(self) -> tuple[int, int]:
        return CELL_PIXELS * self._source.rows, CELL_PIXELS * self._source.columns

    def image(self) -> NDArray[np.uint8]:
        return draw_board(self.board, self.image_size)

    def task(self) -> str:
        restart = " The action restart puts the level back to its start." if self.restart else ""
        return (
            "The picture shows a room from above: brick walls, black floor, yellow boxes, targets (red "
            "squares with a red cross), and the green player. Push every box onto a target. Moving towards a "
            "box pushes it one cell if the cell behind it is free; you cannot pull a box, push two boxes at "
            "once, or walk through walls. A box on a target has a red frame. Think ahead: a box pushed into a "
            f"corner is stuck for good.{restart} Use as few steps as possible."
        )

    def state_text(self) -> str:
        if not self.info_text:
            return "The picture shows the room now."
        return f"{self._note}Boxes on targets: {self.board.on_target} of {len(self.board.boxes)}."

    def describe(self) -> str:
        legend = "the room (# wall, . target, $ box, * box on target, @ player, + player on target)"
        return "\n".join([legend, *self.board.to_level().to_rows()])

    def legal_actions(self) -> list[str]:
        return list(self._legal)

    def oracle(self) -> str | None:
        """The next step of a shortest solution; from a lost position `restart`, if it exists."""
        plan = self._guide.plan(self.board)
        if plan:
            return self._words[LETTERS[plan[0].lower()]]
        return RESTART if self.restart and not self.board.solved else None

    def think(self, action: str) -> str:
        push = self._guide.next_push(self.board)
        if push is None:
            return "no solution from here"
        box, direction = push
        return f"player at {self._place(self.board.player)}, push box at {self._place(box)} {direction}"

    def success(self) -> bool:
        return self.board.solved

    def score(self) -> float:
        return score_of(self._best, self._upper)

    def extra_info(self) -> dict[str, Any]:
        return {
            "level": self.board.level.title,
            "boxes": len(self.board.boxes),
            "boxes_on_target": self.board.on_target,
            "steps": self._steps,
            "solution_steps": len(self.board.level.solution),
            "best_reward": self._best / 10,
            "upper_reward": self._upper / 10,
            "unsolvable": self._guide.unsolvable,
        }

    def save(self) -> dict[str, Any]:
        level = self.board.level
        return {
            "level": {"rows": level.to_rows(), "title": level.title, "solution": level.solution},
            "player": self.board.player,
            "boxes": sorted(self.board.boxes),
            "counters": [self._steps, self._total, self._best],
            "note": self._note,
            "guide": self._guide.save(),
        }

    def load(self, state: dict[str, Any]) -> None:
        # A board of the same level keeps its guide, which remembers the bounds of a search.
        level = Level.from_rows(**state["level"])
        if not hasattr(self, "board") or self.board.level != level:
            self._begin_level(level)
        self.board.place(state["player"], tuple(state["boxes"]))
        self._steps, self._total, self._best = state["counters"]
        self._note = state["note"]
        self._guide.load(**state["guide"])

    def _begin_level(self, level: Level) -> None:
        self.board = Board(level)
        self._guide = Guide(level)
        self._steps = self._total = self._best = 0
        self._upper = upper_tenths(level)
        self._note = ""

    def _place(self, cell: int) -> str:
        row, column = divmod(cell, self.board.level.columns)
        return f"row {row + 1} column {column + 1}"

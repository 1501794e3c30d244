"""The oracle: keeps a shortest solution of the current position, and knows whether one exists at all."""

from __future__ import annotations

from .board import Board, Move
from .level import LETTERS, Level
from .solver import SOLVED, UNSOLVABLE, Warehouse, solve

SHORTEST_NODES = 100_000  # spent on a shortest solution; beyond that some solution has to do
PROOF_NODES = 20_000
GREED = 5


class Guide:
    """Follows one episode."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._house = Warehouse(level)
        self._plan: str | None = level.solution
        self.unsolvable = False

    def restart(self) -> None:
        self._plan, self.unsolvable = self._level.solution, False

    def follow(self, board: Board, letter: str, move: Move) -> None:
        """Note a move in a direction (`u`, `d`, `l`, `r`) that was just played on `board`."""
        if not move.moved:
            return
        if self._plan and self._plan[0].lower() == letter:
            self._plan = self._plan[1:]
            return
        self._plan = None

        # Walking can be undone and nothing saves a lost position, so only pushes from others need a look.
        if move.pushed and not self.unsolvable:
            self.unsolvable = self.is_lost(board)

    def is_lost(self, board: Board) -> bool:
        """True if it is proved that no solution exists from here, within some nodes of search."""
        solution = solve(board.to_level(), self._house, max_nodes=PROOF_NODES, greed=GREED)
        return solution.status == UNSOLVABLE

    def plan(self, board: Board) -> str:
        """Return a solution from here in LURD notation; empty if solved, lost, or too hard for the solver."""
        if self._plan is None and self.unsolvable:
            self._plan = ""
        elif self._plan is None:
            position = board.to_level()
            solution = solve(position, self._house, max_nodes=SHORTEST_NODES)
            if solution.status != SOLVED:
                solution = solve(position, self._house, greed=GREED)
            self._plan = solution.moves
        return self._plan

    def next_push(self, board: Board) -> tuple[int, str] | None:
        """Return the box (cell) that the plan pushes next, and the direction; `None` without a plan."""
        cell = board.player
        for letter in self.plan(board):
            direction = LETTERS[letter.lower()]
            cell += board.level.step_of(direction)
            if letter.isupper():
                return cell, direction
        return None

    def save(self) -> dict[str, object]:
        return {"plan": self._plan, "unsolvable": self.unsolvable}

    def load(self, plan: str | None, unsolvable: bool) -> None:
        self._plan, self.unsolvable = plan, unsolvable

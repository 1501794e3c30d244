"""A game: the PDDL domain and problem, the text grammar, and what its goal is. The same record for generated and for
benchmark games.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .tasks import Goal


@dataclass(frozen=True)
class Game:
    """One game.

    Attributes:
        name: `task-Object-None-Receptacle-scene`, as the benchmark names its folders (with `/trial_...` for a benchmark
            game).
        goal: what must be done.
        scene: number of the floor plan.
        sentence: the task in words.
        domain: PDDL domain.
        grammar: text grammar, with the task's sentence in it.
        problem: PDDL problem.
        file: where a benchmark game was read from; empty for a generated one.
    """

    name: str
    goal: Goal
    scene: int
    sentence: str
    domain: str
    grammar: str
    problem: str
    file: str = ""

    def data(self) -> dict[str, Any]:
        """Return the content of a `game.tw-pddl` file."""
        return {
            "pddl_domain": self.domain,
            "grammar": self.grammar,
            "pddl_problem": self.problem,
            "solvable": True,
            "walkthrough": None,
        }

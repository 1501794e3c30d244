"""A match in which two to four of our players obey an agent each: the engine, some frames a decision, and what ends
it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from vlgym.errors import VlgymError

from .engine import ENGINE_CODES, IDLE, Engine, Snapshot
from .match import SETTLE_FRAMES, find_end
from .scenario import Scenario, distance

MOST_PLAYERS = 4
"""Attackers of a situation, the first of whom has the ball."""


class TeamMatch:
    """A situation being played. Attackers are numbered from 0 here; the goalkeeper, whom the engine plays, is none."""

    def __init__(self, frame_skip: int) -> None:
        self.frame_skip = frame_skip
        self.now: Snapshot
        self.scenario: Scenario
        self.ending = ""
        self.engine = Engine()

    def begin(self, scenario: Scenario, seed: int) -> None:
        """Start a situation; the attacker at the ball takes it up, and then every attacker stands."""
        agents = len(scenario.left) - 1
        self.scenario, self.ending = scenario, ""
        self.now = self.engine.begin(scenario, seed, agents)
        if self.now.agents != tuple(range(1, agents + 1)):
            raise VlgymError(f"The engine gave the agents the players {self.now.agents}.")
        self._watch = {"mode": -1, "team": -1}
        taker = min(range(agents), key=lambda one: distance(self.now.left[one + 1], self.now.ball))
        for _ in range(SETTLE_FRAMES):
            if self.now.owner != -1 or self.now.mode != 0:
                break
            self._frame({taker: "right"})
        self.engine.press(ENGINE_CODES["release_direction"], taker)

    def play(self, actions: Mapping[int, str]) -> float:
        """Play one decision: every attacker's action is pressed once, and what is held stays on. Return our goals less
        theirs."""
        goals = self.now.score
        for frame in range(self.frame_skip):
            self._frame(actions if frame == 0 else {})
            if self.ending:
                break
        return float(self.now.score[0] - goals[0] - self.now.score[1] + goals[1])

    def foresee(self, decide: Callable[[int], Mapping[int, str] | None], decisions: int) -> tuple[str, Snapshot]:
        """Play on a copy of the match, and take everything back. Used by the oracle.

        Args:
            decide: the attackers' actions of the decision of that number, from 0; `None` to look no further.
            decisions: how many at most.

        Returns:
            Why it ends there, or an empty string; and the last frame.
        """
        before, state = (self.now, self._watch), self.engine.save()
        self._watch = dict(self._watch)
        for count in range(decisions):
            actions = decide(count)
            if actions is None:
                break
            self.play(actions)
            if self.ending:
                break
        result = (self.ending, self.now)
        self.now, self._watch = before
        self.ending = ""
        self.engine.restore(state, self.now)
        return result

    def _frame(self, actions: Mapping[int, str]) -> None:
        codes = [ENGINE_CODES[actions.get(one, IDLE)] for one in range(len(self.scenario.left) - 1)]
        self.now = self.engine.advance_together(codes)
        self.ending = find_end(self.now, self.scenario, self._watch)


def for_players(scenario: Scenario, players: int) -> Scenario:
    """Return the situation for `players` attackers: the first ones, and with each further one the next opponent.

    A shipped situation lists four attackers, and the opponents who meet them.
    """
    left = tuple(replace(p, controllable=p.role != "GK") for p in scenario.left[: players + 1])
    missing = MOST_PLAYERS - players
    return replace(scenario, left=left, right=scenario.right[: len(scenario.right) - missing])

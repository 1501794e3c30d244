"""A match in which two to four of our players obey an agent each: engine, decisions and endings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from vlgym.errors import VlgymError

from .engine import ENGINE_CODES, IDLE, Engine, Snapshot
from .match import SETTLE_FRAMES, count_goals, find_end
from .scenario import Scenario, distance

MOST_PLAYERS = 4  # attackers of a situation, the first of whom has the ball


class TeamMatch:
    """A situation being played. Attackers are numbered from 0; the goalkeeper is the engine's."""

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

        # At first nobody has the ball.
        self._watch = {"mode": -1, "team": -1}
        taker = min(range(agents), key=lambda one: distance(self.now.left[one + 1], self.now.ball))
        for _ in range(SETTLE_FRAMES):
            if self.now.owner != -1 or self.now.mode != 0:
                break
            self._frame({taker: "right"})
        self.engine.press(ENGINE_CODES["release_direction"], taker)

    def play(self, actions: Mapping[int, str]) -> float:
        """Play one decision: each action is pressed once, commands stay on. Return our goals less theirs."""
        before = self.now
        for frame in range(self.frame_skip):
            self._frame(actions if frame == 0 else {})
            if self.ending:
                break
        return count_goals(before, self.now)

    def foresee(self, decide: Callable[[int], Mapping[int, str] | None], decisions: int) -> tuple[str, Snapshot]:
        """Play on a copy of the match, and take everything back; return the ending and the last frame.

        Args:
            decide: number of a decision, from 0 -> the attackers' actions; `None` looks no further.
            decisions: how many at most.
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

        # The match goes on as if nothing had been tried.
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
    """Return the situation for its first `players` attackers; each of the four brings one opponent."""
    left = tuple(replace(p, controllable=p.role != "GK") for p in scenario.left[: players + 1])
    missing = MOST_PLAYERS - players
    return replace(scenario, left=left, right=scenario.right[: len(scenario.right) - missing])

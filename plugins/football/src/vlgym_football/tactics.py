"""The oracle: a scripted attacker that reads the positions and tries a few sensible plays on a copy of the match. Good,
not optimal.

Undisturbed, it runs where the ground ahead is free and leads to the goal. Near the goal it tries shots, with free
team-mates passes, under pressure the three best runs; it takes the play with the most reward, keeping the ball counting
for itself. It looks no further than one play ahead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .engine import DIRECTIONS, SHOT, Snapshot
from .match import Match
from .reward import PASS, SCALE, rate_pass_at
from .scenario import METRES, lane_clearance

Vector = NDArray[np.float64]

GOAL = np.array([1.0, 0.0])
_DIAGONAL = np.sqrt(0.5)
HEADINGS: dict[str, Vector] = {
    "left": np.array([-1.0, 0.0]), "top_left": np.array([-_DIAGONAL, -_DIAGONAL]), "top": np.array([0.0, -1.0]),
    "top_right": np.array([_DIAGONAL, -_DIAGONAL]), "right": np.array([1.0, 0.0]),
    "bottom_right": np.array([_DIAGONAL, _DIAGONAL]), "bottom": np.array([0.0, 1.0]),
    "bottom_left": np.array([-_DIAGONAL, _DIAGONAL]),
}  # fmt: skip
"""Direction word -> unit vector in metres (x to the right, y down)."""

SHOOT_WITHIN = 28.0
"""Metres from the goal within which shots are tried."""

PRESSURE, DANGER, FREE_RUN = 5.0, 2.5, 6.0
"""Metres to the nearest opponent: something else than running is tried; a shot from anywhere is tried; none so near
ahead, one may run on without looking."""

CLEAR_LANE, FREE_MATE, MOST_BACK = 2.0, 3.0, 6.0
"""Metres that a lane and a team-mate must be free of opponents; how far back a pass may go."""

KEEPING, EASY_RUN = 20.0, 3.0
"""Points that having the ball is worth; that an undisturbed run promises."""

RUN_SPEED, SPRINT_SPEED, CHASE_SPEED = 5.5, 7.0, 7.5
"""Metres a second: with the ball, sprinting with it, and of an opponent without it."""


class Tactician:
    """Decides one action at a time; remembers the last action, and the rest of a play it has begun."""

    def __init__(self, previous: str = "", rest: Sequence[str] = ()) -> None:
        self.previous = previous
        self.rest = list(rest)
        self._offered: list[str] = []

    def note(self, action: str) -> None:
        plan = self._offered or self.rest
        self.rest = plan[1:] if plan and plan[0] == action else []
        self.previous, self._offered = action, []

    def decide(self, match: Match) -> str:
        """Return the next action: of a few sensible plays, tried on a copy of the match, the one that leads to the
        most."""
        self._offered = self._plan(match)
        return self._offered[0]

    def _plan(self, match: Match) -> list[str]:
        now = match.now
        me = now.left[now.controlled] if now.controlled >= 0 else now.ball[:2]
        if now.owner_team != 0 or now.owner != now.controlled:
            return [heading_to(now.ball[:2] + 4 * now.ball_velocity[:2] - me)]
        if self.rest:
            return self.rest
        gap = nearest_gap(now, me)
        runs = rank_runs(now, me, match.engine.holds("sprint"))
        easy = self._run_on(match, runs[0], gap_ahead(now, me, runs[0]))
        plans = [[SHOT]] if float(np.hypot(*((GOAL - me) * METRES))) < SHOOT_WITHIN or gap < DANGER else []
        for target in find_passes(now, me, match.meter.pass_scale)[:2]:
            turn = heading_to(now.left[target] + 4 * now.left_velocity[target] - me)
            far = float(np.hypot(*((now.left[target] - me) * METRES)))
            kick = "short_pass" if far < 22.0 else "long_pass"
            plans.append([kick] if self.previous == turn else [turn, kick])
        if gap < PRESSURE:
            plans += [[run, run] for run in runs[:3]]
        if not plans:
            return [easy]
        foresights = [match.foresee(plan) for plan in plans]
        worth = [one.reward + (KEEPING if one.kept else 0.0) for one in foresights]
        best = int(np.argmax(worth))
        return plans[best] if worth[best] > (KEEPING + EASY_RUN if gap >= PRESSURE else 0.0) else [easy]

    def _run_on(self, match: Match, run: str, gap: float) -> str:
        if self.previous != run:
            return run
        if match.engine.holds("sprint"):
            # Saying `sprint` again changes nothing but keeps the reply at one frame, where running on would be blind.
            return run if gap > FREE_RUN else "sprint"
        return "sprint" if gap > PRESSURE else run

    def explain(self, now: Snapshot, action: str) -> str:
        """Return a line on what the attacker sees."""
        if now.owner_team != 0:
            return f"the ball is loose, {action} brings me to it"
        me = now.left[now.owner]
        far = float(np.hypot(*((GOAL - me) * METRES)))
        return (
            f"number {now.owner + 1} has the ball {far:.0f} m from the goal, "
            f"an opponent {nearest_gap(now, me):.0f} m away: {action}"
        )


def find_passes(now: Snapshot, me: Vector, pass_scale: float) -> list[int]:
    """Return the team-mates worth passing to, the best first."""
    ranking = []
    for index in np.flatnonzero(now.left_active):
        if index in (now.owner, 0):
            continue
        mate = now.left[index] + 5 * now.left_velocity[index]
        way = (mate - me) * METRES
        length = float(np.hypot(*way))
        if not 6.0 <= length <= 32.0 or abs(mate[0]) > 0.96 or abs(mate[1]) > 0.4:
            continue
        marker = nearest_gap(now, mate)
        if lane_clearance(me, mate, now.right) < CLEAR_LANE or marker < FREE_MATE or way[0] < -MOST_BACK:
            continue
        promised = SCALE * PASS * pass_scale * rate_pass_at(mate, now.right)
        ranking.append((min(promised, 25.0) + 30.0 * (mate[0] - me[0]) + 0.3 * min(marker, 10.0), int(index)))
    return [index for _, index in sorted(ranking, reverse=True)]


def rank_runs(now: Snapshot, me: Vector, sprinting: bool) -> list[str]:
    """Return the directions, best first: those whose ground ahead no opponent reaches first, and that lead to the
    goal."""
    speed = SPRINT_SPEED if sprinting else RUN_SPEED
    ranking = []
    aim = GOAL if me[0] > 0.5 else np.array([1.0, 0.7 * me[1]])
    far_now = float(np.hypot(*((aim - me) * METRES)))
    for name, way in HEADINGS.items():
        value = 0.0
        for seconds in (0.3, 0.7, 1.2, 1.8):
            place = me + way * speed * seconds / METRES
            if abs(place[0]) > 0.985 or abs(place[1]) > 0.4:
                value -= 8.0
                continue
            nearest = float(np.min(np.hypot(*((now.right + 3 * now.right_velocity - place) * METRES).T)))
            slack = nearest / CHASE_SPEED - 0.6 * seconds
            value += 0.4 * (far_now - float(np.hypot(*((aim - place) * METRES)))) / seconds - 7.0 * np.exp(
                -max(slack, 0.0) / 0.3
            )
        ranking.append((value, name))
    return [name for _, name in sorted(ranking, reverse=True)]


def nearest_gap(now: Snapshot, place: Vector) -> float:
    """Return the distance in metres of the nearest opponent to a place."""
    return float(np.min(np.hypot(*((now.right - place) * METRES).T)))


def gap_ahead(now: Snapshot, me: Vector, run: str) -> float:
    """Return the distance in metres of the nearest opponent that is not behind a runner."""
    gaps = (now.right - me) * METRES
    ahead = gaps[gaps @ HEADINGS[run] > -0.5]
    return float(np.min(np.hypot(*ahead.T))) if len(ahead) else float("inf")


def heading_to(way: Vector) -> str:
    """Return the direction word nearest to a vector in pitch coordinates."""
    metres = way * METRES
    return max(DIRECTIONS, key=lambda name: float(HEADINGS[name] @ metres))

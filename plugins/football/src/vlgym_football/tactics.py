"""The oracle: a scripted attacker that reads the positions and tries plays on a copy of the match.

Undisturbed, it runs over free ground towards the goal. Near the goal it tries shots, with free team-mates
passes, under pressure the three best runs; it takes the play with the most reward, which keeping the ball
adds to. It looks one play ahead, so it is good, not optimal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .engine import DIRECTIONS, SHOT, Snapshot
from .match import Match
from .reward import PASS, SCALE, rate_pass
from .scenario import METRES, distance, lane_clearance

Vector = NDArray[np.float64]

GOAL = np.array([1.0, 0.0])
_D = np.sqrt(0.5)
# Direction word -> unit vector in metres (x to the right, y down).
HEADINGS: dict[str, Vector] = {
    "left": np.array([-1.0, 0.0]), "top_left": np.array([-_D, -_D]), "top": np.array([0.0, -1.0]),
    "top_right": np.array([_D, -_D]), "right": np.array([1.0, 0.0]), "bottom_right": np.array([_D, _D]),
    "bottom": np.array([0.0, 1.0]), "bottom_left": np.array([-_D, _D]),
}  # fmt: skip

SHOOT_WITHIN = 28.0  # metres from the goal within which shots are tried
PRESSURE, DANGER = 5.0, 2.5  # metres to the nearest opponent: other plays, and shots from anywhere, are tried
FREE_RUN = 6.0  # metres without an opponent ahead, within which one may run on without looking
CLEAR_LANE, FREE_MATE = 2.0, 3.0  # metres that a lane and a team-mate must be free of opponents
MOST_BACK = 6.0  # metres that a pass may go back
KEEPING, EASY_RUN = 20.0, 3.0  # points of having the ball, and of an undisturbed run
RUN_SPEED, SPRINT_SPEED = 5.5, 7.0  # metres a second with the ball
CHASE_SPEED = 7.5  # metres a second of an opponent without it


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
        """Return the first action of the play that leads to the most."""
        self._offered = self._plan(match)
        return self._offered[0]

    def _plan(self, match: Match) -> list[str]:
        now = match.now
        me = now.left[now.controlled] if now.controlled >= 0 else now.ball[:2]
        if now.owner_team != 0 or now.owner != now.controlled:
            return [heading_to(now.ball[:2] + 4 * now.ball_velocity[:2] - me)]
        if self.rest:
            return self.rest

        # Plays that the position suggests.
        gap = nearest_gap(now, me)
        runs = rank_runs(now, me, match.engine.holds("sprint"))
        easy = self._run_on(match, runs[0], gap_ahead(now, me, runs[0]))
        plans = [[SHOT]] if distance(GOAL, me) < SHOOT_WITHIN or gap < DANGER else []
        for target in find_passes(now, me, match.meter.pass_scale)[:2]:
            turn = heading_to(now.left[target] + 4 * now.left_velocity[target] - me)
            kick = "short_pass" if distance(now.left[target], me) < 22.0 else "long_pass"
            plans.append([kick] if self.previous == turn else [turn, kick])
        if gap < PRESSURE:
            plans += [[run, run] for run in runs[:3]]
        if not plans:
            return [easy]

        # Trying tells which is best, and whether it beats an easy run.
        worth = []
        for plan in plans:
            reward, ending, then = match.foresee(plan)
            worth.append(reward + (KEEPING if not ending and then.owner_team == 0 else 0.0))
        best = int(np.argmax(worth))
        return plans[best] if worth[best] > (KEEPING + EASY_RUN if gap >= PRESSURE else 0.0) else [easy]

    def _run_on(self, match: Match, run: str, gap: float) -> str:
        if self.previous != run:
            return run
        if match.engine.holds("sprint"):
            # A second `sprint` changes nothing but keeps the reply at one frame; running on would be blind.
            return run if gap > FREE_RUN else "sprint"
        return "sprint" if gap > PRESSURE else run

    def explain(self, now: Snapshot, action: str) -> str:
        """Return the attacker's view in a line."""
        if now.owner_team != 0:
            return f"the ball is loose, {action} brings me to it"
        me = now.left[now.owner]
        return (
            f"number {now.owner + 1} has the ball {distance(GOAL, me):.0f} m from the goal, "
            f"an opponent {nearest_gap(now, me):.0f} m away: {action}"
        )


def find_passes(now: Snapshot, me: Vector, pass_scale: float) -> list[int]:
    """Return the team-mates worth passing to, the best first."""
    ranking = []
    for index in np.flatnonzero(now.left_active):
        if index in (now.owner, 0):
            continue

        # In reach, on the pitch, and free.
        mate = now.left[index] + 5 * now.left_velocity[index]
        if not 6.0 <= distance(mate, me) <= 32.0 or abs(mate[0]) > 0.96 or abs(mate[1]) > 0.4:
            continue
        marker = nearest_gap(now, mate)
        back = (me[0] - mate[0]) * METRES[0] > MOST_BACK
        if lane_clearance(me, mate, now.right) < CLEAR_LANE or marker < FREE_MATE or back:
            continue

        # The promised reward, ground that is won, and room at the reception.
        promised = min(SCALE * PASS * pass_scale * rate_pass(mate, now.right), 25.0)
        worth = promised + 30.0 * (mate[0] - me[0]) + 0.3 * min(marker, 10.0)
        ranking.append((worth, int(index)))
    return [index for _, index in sorted(ranking, reverse=True)]


def rank_runs(now: Snapshot, me: Vector, sprinting: bool) -> list[str]:
    """Return the directions, best first: over ground that no opponent reaches first, to the goal."""
    speed = SPRINT_SPEED if sprinting else RUN_SPEED
    ranking = []
    aim = GOAL if me[0] > 0.5 else np.array([1.0, 0.7 * me[1]])
    opponents = now.right + 3 * now.right_velocity
    for name, way in HEADINGS.items():
        value = 0.0
        for seconds in (0.3, 0.7, 1.2, 1.8):
            place = me + way * speed * seconds / METRES
            if abs(place[0]) > 0.985 or abs(place[1]) > 0.4:
                value -= 8.0
                continue
            nearest = float(np.min(np.hypot(*((opponents - place) * METRES).T)))
            slack = nearest / CHASE_SPEED - 0.6 * seconds
            gain = distance(aim, me) - distance(aim, place)
            value += 0.4 * gain / seconds - 7.0 * np.exp(-max(slack, 0.0) / 0.3)
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

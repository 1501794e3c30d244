"""The oracles: they read the positions, and try plays on a copy of the match; good, not optimal.

`Tactician` plays alone. Undisturbed, it runs over free ground towards the goal. Near the goal it
tries shots, with free team-mates passes, under pressure the three best runs; it takes the play with
the most reward, to which keeping the ball adds. `TeamScript` decides for all attackers of a team.
The owner of the ball tries shots, passes to team-mates who then shoot, and runs; he takes the play
that leads to a goal soonest, else the one to the best place. The others make themselves free near
the goal, and the nearest one fetches a loose ball.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .engine import DIRECTIONS, IDLE, SHOT, Snapshot
from .match import Match, TeamMatch
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
PRESSURE, DANGER = 5.0, 2.5  # metres to an opponent for other plays, and for shots from anywhere
FREE_RUN = 6.0  # metres without an opponent ahead, within which one may run on without looking
CLEAR_LANE, FREE_MATE = 2.0, 3.0  # metres that a lane and a team-mate must be free of opponents
MOST_BACK = 6.0  # metres that a pass may go back
KEEPING, EASY_RUN = 20.0, 3.0  # points of having the ball, and of an undisturbed run
RUN_SPEED, SPRINT_SPEED = 5.5, 7.0  # metres a second with the ball
CHASE_SPEED = 7.5  # metres a second of an opponent without it


class Tactician:
    """Decides one action at a time; remembers the last one, and the rest of a play."""

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
            # A second `sprint` keeps the reply at one frame; running on would be blind.
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
    """Return the directions, best first: over free ground, to the goal."""
    speed = SPRINT_SPEED if sprinting else RUN_SPEED
    aim = GOAL if me[0] > 0.5 else np.array([1.0, 0.7 * me[1]])
    opponents = now.right + 3 * now.right_velocity

    # A direction is worth what its next two seconds gain, less what the opponents threaten.
    ranking = []
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


SHOT_RANGE = 22.0  # metres from the goal within which shots, and passes to a shooter, are tried
SHOT_LANE = 0.8  # metres that the way to the goal must be free of defenders for a shot
NEAREST_MATE, FARTHEST_MATE = 4.0, 32.0  # metres between which team-mates are passed to
LONG = 24.0  # metres from which on a pass is a `long_pass`
LEAD = 6.0  # frames that a team-mate runs on before a pass arrives
MARGIN = 0.1  # gain in value that a pass needs, unless an opponent is near
SHOT_DECISIONS, PASS_DECISIONS = 3, 7  # for which a shot, and a pass with a shot, are followed
LOST_WORTH, GOAL_WORTH = -1.0, 2.0


class TeamScript:
    """Decides for all attackers of a match, from the match alone."""

    def __init__(self, match: TeamMatch) -> None:
        self.match = match

    def choose(self, attacker: int) -> str:
        """Return the action of an attacker, numbered from 0."""
        now = self.match.now
        if now.owner_team == -1 and attacker == find_fetcher(now):
            return self._fetch(now, attacker)
        if now.owner_team != 0 or now.owner != attacker + 1:
            return self._make_free(now, attacker)

        # With the ball: a sure shot, a pass that betters the place, a run.
        me = now.left[attacker + 1]
        if in_range(me) and lane_clearance(me, GOAL, now.right[1:]) > SHOT_LANE:
            for play in ([SHOT], ["right", SHOT], ["top_right", SHOT], ["bottom_right", SHOT]):
                if self._scores(attacker, play):
                    return play[0]
        worth, kick = self._best_pass(now, attacker)
        gain = MARGIN if nearest_gap(now, me) >= PRESSURE else -1.0
        if worth > rate_place(me, now.right) + gain:
            return kick
        return rank_runs(now, me, sprinting=False)[0]

    def _best_pass(self, now: Snapshot, attacker: int) -> tuple[float, str]:
        """The worth and first action of a pass to a goal, else to the best place."""
        best = (LOST_WORTH, "")
        for play in self._passes(now, attacker):
            worth = self._rate(attacker, play)
            if worth > best[0]:
                best = (worth, play[0])
            if worth == GOAL_WORTH:
                break
        return best

    def _passes(self, now: Snapshot, attacker: int) -> list[list[str]]:
        """The passes to try: as he stands, after a turn to a team-mate, and over the opponents."""
        plays = []
        for mate in find_mates(now, attacker):
            place, me = now.left[mate + 1] + LEAD * now.left_velocity[mate + 1], now.left[attacker + 1]
            kick = "short_pass" if distance(place, me) < LONG else "long_pass"
            turned = heading_to(place - me)
            options = ([kick], [turned, kick], ["high_pass"], [turned, "high_pass"])
            plays += [play for play in options if play not in plays]
        return plays

    def _scores(self, attacker: int, play: list[str]) -> bool:

        def decide(count: int) -> Mapping[int, str]:
            return {attacker: play[count]} if count < len(play) else {}

        return self.match.foresee(decide, len(play) + SHOT_DECISIONS)[0] == "goal"

    def _rate(self, attacker: int, play: list[str]) -> float:
        """Return a pass's worth: `GOAL_WORTH`, the receiver's place, or `LOST_WORTH`."""
        worth = LOST_WORTH

        def decide(count: int) -> Mapping[int, str] | None:
            nonlocal worth
            now = self.match.now
            if count < len(play):
                return {attacker: play[count]}

            # The receiver shoots at once; without one, somebody fetches the ball.
            if now.owner_team == 0 and now.owner not in (0, attacker + 1):
                if worth == LOST_WORTH:
                    worth = rate_place(now.left[now.owner], now.right)
                return {now.owner - 1: SHOT} if in_range(now.left[now.owner]) else None
            if worth != LOST_WORTH:
                return {}
            fetcher = find_fetcher(now)
            return {fetcher: self._fetch(now, fetcher)} if now.owner_team == -1 else {}

        return GOAL_WORTH if self.match.foresee(decide, PASS_DECISIONS)[0] == "goal" else worth

    def _fetch(self, now: Snapshot, attacker: int) -> str:
        return heading_to(now.ball[:2] + 4 * now.ball_velocity[:2] - now.left[attacker + 1])

    def _make_free(self, now: Snapshot, attacker: int) -> str:
        """Return the direction to a better place that a pass can reach, or a standstill."""
        me, ball = now.left[attacker + 1], now.ball[:2]

        def worth(place: Vector) -> float:
            if not (abs(place[0]) < 0.93 and abs(place[1]) < 0.38):
                return -1.0
            lane = min(lane_clearance(ball, place, now.right[1:]), 4.0) / 4.0
            apart = min(distance(place, ball), 9.0) / 9.0
            return rate_place(place, now.right) + 0.25 * lane + 0.25 * apart

        # A step of three metres must be worth it.
        options = {name: me + way * 3.0 / METRES for name, way in HEADINGS.items()}
        best = max(options, key=lambda name: worth(options[name]))
        if worth(options[best]) > worth(me) + 0.01:
            return best
        running = any(self.match.engine.holds(name, attacker) for name in DIRECTIONS)
        return "release_direction" if running else IDLE


def find_mates(now: Snapshot, attacker: int) -> list[int]:
    """Return at most two attackers in reach of a pass, the best placed first."""
    me, ranking = now.left[attacker + 1], []
    for mate in range(len(now.left) - 1):
        place = now.left[mate + 1] + LEAD * now.left_velocity[mate + 1]
        if mate != attacker and NEAREST_MATE <= distance(place, me) <= FARTHEST_MATE:
            ranking.append((rate_place(place, now.right), mate))
    return [mate for _, mate in sorted(ranking, reverse=True)[:2]]


def in_range(place: Vector) -> bool:
    return distance(GOAL, place) < SHOT_RANGE


def find_fetcher(now: Snapshot) -> int:
    """Return the attacker who gets to a loose ball first."""
    return min(range(len(now.left) - 1), key=lambda one: time_to_ball(now, now.left[one + 1]))


def rate_place(place: Vector, opponents: Vector) -> float:
    """Return a place's worth for a shot, 0 to 1: near, not from the side, the way free."""
    way = (GOAL - place) * METRES
    near = np.exp(-abs(distance(GOAL, place) - 12.0) / 12.0)
    angle = abs(float(np.arctan2(way[1], max(way[0], 0.01))))
    free = np.clip(lane_clearance(place, GOAL, opponents[1:]) / 4.0, 0.0, 1.0)
    return float(near * (0.35 + 0.65 * free) * (1.0 - 0.5 * min(angle / 1.4, 1.0)))


def time_to_ball(now: Snapshot, place: Vector) -> float:
    """Return the seconds until somebody from a place can meet the rolling ball."""
    frames = np.arange(0, 40, 2)
    balls = now.ball[:2] + now.ball_velocity[:2] * (frames * (1 - frames / 80))[:, None]
    far = np.hypot(*((balls - place) * METRES).T)
    reached = np.flatnonzero(far <= 0.65 * frames)
    return float(frames[reached[0]]) / 10 if len(reached) else 4.0 + float(far[0])

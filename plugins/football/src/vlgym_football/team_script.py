"""The oracle of a team: it reads the positions, and tries plays with the ball on a copy of the match.

The owner of the ball tries shots, passes to team-mates who then shoot, and runs; he takes the play that
leads to a goal soonest, else the one that leaves the ball at the best place. The others make themselves
free near the goal, and the nearest one fetches a loose ball. It is good, not optimal.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .engine import DIRECTIONS, IDLE, SHOT, Snapshot
from .scenario import METRES, distance, lane_clearance
from .tactics import GOAL, HEADINGS, PRESSURE, Vector, heading_to, nearest_gap, rank_runs
from .team_match import TeamMatch

SHOT_RANGE = 22.0  # metres from the goal within which shots, and passes to a shooter, are tried
SHOT_LANE = 0.8  # metres that the way to the goal must be free of defenders for a shot
NEAREST_MATE, FARTHEST_MATE = 4.0, 32.0  # metres between which team-mates are passed to
LONG = 24.0  # metres from which on a pass is a `long_pass`
LEAD = 6.0  # frames that a team-mate runs on before a pass arrives
MARGIN = 0.1  # gain in value that a pass needs, unless an opponent is near
SHOT_DECISIONS, PASS_DECISIONS = 3, 7  # for which a shot, and a pass with the shot after it, are followed
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
        """The worth and first action of a pass that a goal follows, else of the one to the best place."""
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
        """True if a shot goes in."""

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
        """Return the direction to a better place to shoot from that a pass can reach, or a standstill."""
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
    """Return how good a place is for a shot, 0 to 1: near the goal, not from the side, the way free."""
    way = (GOAL - place) * METRES
    near = np.exp(-abs(distance(GOAL, place) - 12.0) / 12.0)
    angle = abs(float(np.arctan2(way[1], max(way[0], 0.01))))
    free = np.clip(lane_clearance(place, GOAL, opponents[1:]) / 4.0, 0.0, 1.0)
    return float(near * (0.35 + 0.65 * free) * (1.0 - 0.5 * min(angle / 1.4, 1.0)))


def time_to_ball(now: Snapshot, place: Vector) -> float:
    """Return the seconds until somebody who starts at a place can be where the rolling ball is by then."""
    frames = np.arange(0, 40, 2)
    balls = now.ball[:2] + now.ball_velocity[:2] * (frames * (1 - frames / 80))[:, None]
    far = np.hypot(*((balls - place) * METRES).T)
    reached = np.flatnonzero(far <= 0.65 * frames)
    return float(frames[reached[0]]) / 10 if len(reached) else 4.0 + float(far[0])

"""MageBench's football reward, frame by frame, as its program computes it.

    reward = 20 * (0.8 S_move + 1.0 S_oppo + 2.0 scored + 1.0 t/T stolen + 20 s S_pass
                   + min(100 S_shot, 2/3))

- `S_move`: new ground of the ball towards the goal line while we have it; no ground is paid twice.
- `S_oppo`: change of the share of eleven opponents that the ball has passed, while we have it.
- `stolen`: the opponents take the ball at frame t of T. It is paid, and more the later it happens.
- `S_pass`: at the reception of a pass, the least `d / (10 max(cos a, 0) + 1)` over the opponents:
  `d` is the distance to the ball, `a` the angle between opponent and middle of the goal, seen from
  the ball. `s` is 1 for the first pass of an episode, and falls to 3/4 with each.
- `S_shot`: when a shot is ordered, the widest lane to the goal (the least distance of an opponent
  to a line from the ball to one of five points of the goal, at best) times a factor that falls with
  the distance from the goal.

The first frame pays nothing. As published: the asymmetric points -0.02 and 0.022 of the goal; a
pass counts when an opponent's number differs while a shot is pending; a loose ball ends it.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .engine import PASSES, SHOT, Snapshot

SCALE = 20.0
MOVE, OPPONENTS, SCORED, STOLEN, PASS, SHOOT = 0.8, 1.0, 2.0, 1.0, 20.0, 100.0
SHOT_CAP = SCORED / 3
PASS_DECAY = 0.75
TEAM_SIZE = 11
GOAL_POINTS = np.array([[1.0, y] for y in (-0.044, -0.02, 0.0, 0.022, 0.044)])
LINE_POINTS = 100
COMPONENTS = ("move", "opponents", "scored", "stolen", "pass", "shot")


@dataclass
class RewardMeter:
    """State of the reward between frames."""

    duration: int  # T of the formula, in frames
    possession: bool = True  # a lost ball ends the episode; else `stolen` is not paid
    begun: bool = False
    best_x: float = 0.0
    passed: int = 0
    goals: int = 0
    previous_owner: int = -1
    pass_pending: bool = False
    shot_pending: bool = False
    pass_scale: float = 1.0
    totals: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COMPONENTS, 0.0))

    def pay(self, now: Snapshot, action: str) -> tuple[float, bool]:
        """Return the reward of the frame after `action`, and whether the ball was stolen."""
        if not self.begun:
            self.begun = True
            self.best_x, self.passed = float(now.ball[0]), count_passed(now)
            return 0.0, False

        # Ground and opponents count while we have the ball.
        parts = dict.fromkeys(COMPONENTS, 0.0)
        ours, theirs = now.owner_team == 0, now.owner_team == 1
        if ours:
            ahead = float(now.ball[0])
            parts["move"] = MOVE * max(0.0, ahead - self.best_x)
            self.best_x = max(self.best_x, ahead)
            passed = count_passed(now)
            parts["opponents"] = OPPONENTS * (passed - self.passed) / TEAM_SIZE
            self.passed = passed

        # A goal, or a ball that is lost by anything but a shot.
        if now.score[0] > self.goals:
            parts["scored"] = SCORED
        self.goals = now.score[0]
        stolen = theirs and not self.shot_pending and self.possession
        if stolen:
            parts["stolen"] = STOLEN * now.frame / self.duration

        # A pass is paid when another player has it, a shot when it is ordered.
        changed = now.owner != -1 and self.previous_owner not in (-1, now.owner)
        if self.pass_pending and changed and not stolen:
            parts["pass"] = PASS * rate_pass(now.ball[:2], now.right) * self.pass_scale
            self.pass_scale *= PASS_DECAY
            self.pass_pending = False
        if now.owner != -1:
            self.previous_owner = now.owner
        if action in PASSES:
            self.pass_pending = True
        if action == SHOT and ours and not self.shot_pending:
            parts["shot"] = min(SHOOT * rate_shot(now), SHOT_CAP)
            self.shot_pending = True
        if self.shot_pending and now.owner != self.previous_owner:
            self.shot_pending = False

        # The totals are the episode's score.
        for name, value in parts.items():
            self.totals[name] += SCALE * value
        return SCALE * sum(parts.values()), stolen


def count_passed(now: Snapshot) -> int:
    """Return how many opponents (the goalkeeper counts) the ball is in front of."""
    return int(np.sum(now.ball[0] > now.right[:, 0]))


def rate_pass(place: NDArray[np.float64], opponents: NDArray[np.float64]) -> float:
    """Return `S_pass` for a ball at `place`, `[2]`, and `opponents`, `[n, 2]`."""
    to_goal = np.array([1.0, 0.0]) - place
    to_opponents = opponents - place
    far = np.hypot(*to_opponents.T)
    norms = far * np.hypot(*to_goal)
    cosine = np.divide(to_opponents @ to_goal, norms, out=np.ones_like(norms), where=norms > 1e-12)
    return float(np.min(far / (10.0 * np.maximum(cosine, 0.0) + 1.0)))


def rate_shot(now: Snapshot) -> float:
    """Return `S_shot` from the ball's place."""
    ball = now.ball[:2]
    steps = np.arange(1, LINE_POINTS + 1)[:, None, None] / LINE_POINTS
    line = ball + steps * (GOAL_POINTS - ball)  # [100, 5, 2]
    gaps = np.hypot(*np.moveaxis(line[:, :, None] - now.right, -1, 0))  # [100, 5, opponents]
    clear = float(gaps.min(axis=(0, 2)).max())
    from_goal = 1.0 - float(ball[0])
    return clear * (1.0 if from_goal < 0.3 else max(1.0 - from_goal, 0.0))

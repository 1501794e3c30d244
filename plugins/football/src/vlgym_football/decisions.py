"""Decision points: which frames one reply plays, so that a model is asked only where there is something to decide
(after MageBench). `Football` says which these are."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from .actions import BUILTIN_AI, DIRECTIONS, PASSES, SHOT
from .engine import Snapshot

RUN_FRAMES = 10
MEETING = 0.01
"""Distance in pitch coordinates at which two players meet."""

LOOK_AHEAD, EDGE_AHEAD = 5, 3
"""Frames for which meetings with opponents, and the pitch's edge, are foreseen."""

LONGEST_PASS = 400
"""Frames after which a pass that nobody gets gives control back."""

Frames = Generator[str, Snapshot, None]


@dataclass
class DecisionMaker:
    """Turns replies into frames. `started` tells whether the first reply has been played."""

    previous_action: str = ""
    direction: str = "right"
    started: bool = False

    def frames(self, action: str, now: Snapshot) -> Frames:
        """Yield the frames' actions one by one; each `send` brings the snapshot after the frame. The caller stops at
        the episode's end."""
        if action in DIRECTIONS:
            self.direction = action
        if not self.started:
            self.started = True
            yield action
            return
        again = action == self.previous_action
        self.previous_action = action
        if action in DIRECTIONS and again:
            yield from self._run(action)
        elif (action in PASSES or action == SHOT) and now.owner_team != -1:
            yield from self._pass(action, now)
        else:
            yield action

    def _run(self, action: str) -> Frames:
        for _ in range(RUN_FRAMES):
            now = yield action
            if not can_run_on(now):
                return

    def _pass(self, action: str, now: Snapshot) -> Frames:
        passer = now.owner
        for _ in range(LONGEST_PASS):
            if now.owner == passer:
                now = yield action
                if now.owner == passer:
                    now = yield self.direction
            elif now.owner == -1:
                now = yield BUILTIN_AI
            else:
                return


def can_run_on(now: Snapshot) -> bool:
    """Whether the owner of the ball (or the ball, if nobody has it) stays on the pitch and meets no opponent in the
    next frames."""
    if now.owner_team == -1:
        place, pace = now.ball[:2], now.ball_velocity[:2]
    else:
        team, paces = (now.left, now.left_velocity) if now.owner_team == 0 else (now.right, now.right_velocity)
        place, pace = team[now.owner], paces[now.owner]
    x, y = place + EDGE_AHEAD * pace
    if not (abs(x) < 1.0 and abs(y) < 0.42):
        return False
    steps = np.arange(LOOK_AHEAD + 1)[:, None, None]
    gaps = (place + steps * pace) - (now.right + steps * now.right_velocity)  # [6, opponents, 2]
    return bool(np.all(np.hypot(gaps[..., 0], gaps[..., 1]) >= MEETING))

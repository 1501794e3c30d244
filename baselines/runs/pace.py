"""How far a run is and how long it has still to go, from its recent updates.

The bar's own estimate looks at the last half minute: it says nothing of updates that take longer.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

RECENT = 10  # updates that the estimate is of


class Pace:
    """Notes when updates end. A run ends with its last update, or with the last environment step that is paid for.

    Args:
        updates: updates of the whole run.
        env_steps: environment steps of the whole run; None for no limit.
        clock: gives seconds.
    """

    def __init__(self, updates: int, env_steps: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = {"update": updates} | ({} if env_steps is None else {"env_steps": env_steps})
        self.clock = clock
        self._marks: deque[tuple[float, Mapping[str, int]]] = deque(maxlen=RECENT + 1)

    def note(self, row: Mapping[str, Any], before: Mapping[str, int]) -> None:
        """An update has ended just now.

        Args:
            row: what it logged; of the first one, the phases' seconds say when it began.
            before: `update` and `env_steps` before it.
        """
        now = self.clock()
        if not self._marks:
            phases = (row.get(f"seconds/{name}", 0.0) for name in ("rollout", "reference", "check", "update"))
            self._marks.append((now - sum(phases), {name: before[name] for name in self.limits}))
        self._marks.append((now, {name: int(row[name]) for name in self.limits}))

    def nearest(self, done: Mapping[str, int]) -> tuple[int, int]:
        """Of the limit that is nearest to its end: how much is done, and of how much."""
        name = max(self.limits, key=lambda name: done[name] / self.limits[name])
        return min(done[name], self.limits[name]), self.limits[name]

    def ends(self) -> float | None:
        """When the run will end, on the clock; None before the first update."""
        if not self._marks:
            return None
        (began, before), (now, after) = self._marks[0], self._marks[-1]
        lefts = [
            (now - began) * max(0, limit - after[name]) / (after[name] - before[name])
            for name, limit in self.limits.items()
            if after[name] > before[name]
        ]
        return now + min(lefts) if lefts else None

"""Whether a position has any solution at all: asked after pushes that leave the known solution.

Walking never changes the answer, so positions with the same boxes and the same region of the player are one. The
search goes for the smallest bound first and does not care for length, which makes it far quicker than `solve` where a
solution exists.
"""

from __future__ import annotations

import heapq

from .deadlocks import DEAD, Warehouse, to_cells, to_mask

MAX_NODES = 20_000
"""Positions seen for one question before it stays open."""


class Feasibility:
    """Answers for one room, remembered for the whole episode."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.house = warehouse
        self._answers: dict[tuple[int, int], bool] = {}

    def is_solvable(self, player: int, boxes: tuple[int, ...]) -> bool | None:
        """Return whether a solution exists, or `None` if the limit was reached first."""
        house = self.house
        first = to_mask(boxes)
        if house.bound(first) >= DEAD:
            return False
        region = house.reach(player, first)
        start = (first, region & -region)
        known = self._answers.get(start)
        if known is not None:
            return known
        columns = house.columns
        seen = {start}
        came: dict[tuple[int, int], tuple[int, int]] = {}
        count = 0
        heap = [(house.bound(first), count, start, region)]
        while heap:
            _, _, node, region = heapq.heappop(heap)
            boxes_now = node[0]
            if boxes_now == house.targets or self._answers.get(node):
                self._mark(node, came)
                return True
            if len(seen) > MAX_NODES:
                return None
            free = house.floor & ~boxes_now
            for step in (-columns, columns, -1, 1):
                for box in _pushable(boxes_now, region, free & house.live, step):
                    following = boxes_now ^ (1 << box) | (1 << (box + step))
                    bound = house.bound(following)
                    if bound >= DEAD:
                        continue
                    reached = house.reach(box, following)
                    child = (following, reached & -reached)
                    if child in seen or self._answers.get(child) is False:
                        continue
                    seen.add(child)
                    came[child] = node
                    count += 1
                    heapq.heappush(heap, (bound, count, child, reached))
        # Whatever was seen was reached from the start and led nowhere.
        self._answers.update(dict.fromkeys(seen, False))
        return False

    def _mark(self, node: tuple[int, int], came: dict[tuple[int, int], tuple[int, int]]) -> None:
        self._answers[node] = True
        while node in came:
            node = came[node]
            self._answers[node] = True


def _pushable(boxes: int, region: int, enter: int, step: int) -> list[int]:
    """Return the boxes that can be pushed by `step`: the player reaches one side, the other may be entered."""
    if step > 0:
        mask = boxes & (region << step) & (enter >> step)
    else:
        mask = boxes & (region >> -step) & (enter << -step)
    return to_cells(mask)

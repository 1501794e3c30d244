"""Numbers published with MageBench that our levels follow: level `k` of a group has a solution of the same length as
the `k`-th level of that group, in the order of its ids; and its mini set."""

from __future__ import annotations

SOLUTION_STEPS: dict[str, tuple[int, ...]] = {
    "small-v0": (
        11, 10, 18, 21, 14, 6, 4, 2, 6, 19, 10, 16, 2, 16, 8, 11, 4, 3, 14, 24, 8, 8, 9, 12, 5,
        8, 9, 6, 8, 2, 11, 17, 10, 12, 7, 23, 7, 9, 6, 11, 22, 9, 8, 7, 15, 10, 15, 17, 4, 12,
    ),
    "small-v1": (15, 10, 18, 12, 6, 17, 16, 37, 25, 12, 24, 11, 22, 26, 8, 15, 26, 19, 24, 16),
    "v0": (31, 22, 27, 23, 18, 15, 15, 24, 12, 28, 16, 36, 31, 33, 24),
    "v1": (37, 43, 21, 24, 25, 44, 35, 22, 45, 32, 39, 33, 21, 21, 36, 36, 22, 33, 25, 18, 25, 14, 27, 41),
    "v2": (39, 28, 21, 47, 24, 50, 45, 18, 45, 41, 47, 38, 42, 34, 47, 28, 44, 30, 32, 44, 48, 43),
    "large-v0": (24, 37, 39, 13, 38, 34, 34, 16, 37, 35, 24, 24, 18, 18),
    "large-v1": (48, 49, 29, 44, 33, 34, 41, 38, 34, 29, 41, 38, 35, 41, 44, 46, 30, 49),
    "huge-v0": (35, 40, 32, 36, 41, 32, 31, 29, 48, 46, 44, 37, 36, 30, 33, 36, 37, 48, 40),
}  # fmt: skip
"""Steps of MageBench's stored solution of each level (from its `upper_bound.json`)."""

MINI: tuple[tuple[str, int], ...] = (
    *(("small-v0", index) for index in (5, 6, 7, 16, 17, 24, 29, 38, 48)),
    *(("small-v1", index) for index in (1, 4, 14)),
    *(("v0", index) for index in (6, 8)),
    ("v1", 21),
    *(("large-v0", index) for index in (3, 7, 13)),
    *(("huge-v0", index) for index in (7, 13)),
)
"""The 20 levels (group, level) of the mini set."""

"""Shapes of the icons: areas, lines and discs in a circle of radius 1 round (0, 0), y downwards."""

from __future__ import annotations

import math
from typing import NamedTuple

Point = tuple[float, float]


class Part(NamedTuple):
    """An `area` or `line` through points, or a `disc` round the only point."""

    kind: str
    points: tuple[Point, ...]
    radius: float = 0.0


def _area(*points: Point) -> Part:
    return Part("area", points)


def _line(*points: Point) -> Part:
    return Part("line", points)


def _disc(x: float, y: float, radius: float) -> Part:
    return Part("disc", ((x, y),), radius)


def _round(x: float, y: float, radii: tuple[float, ...], count: int) -> tuple[Point, ...]:
    """Return points round (x, y), the first one at the top, whose distances take turns."""
    angles = [2 * math.pi * at / count for at in range(count)]
    return tuple(
        (x + radii[at % len(radii)] * math.sin(angle), y - radii[at % len(radii)] * math.cos(angle))
        for at, angle in enumerate(angles)
    )


def _ring(x: float, y: float, radius: float) -> Part:
    points = _round(x, y, (radius,), 16)
    return _line(*points, points[0])


SHAPES: dict[str, tuple[Part, ...]] = {
    "star": (_area(*_round(0, 0, (1.1, 0.45), 10)),),
    "heart": (_disc(-0.45, -0.3, 0.52), _disc(0.45, -0.3, 0.52), _area((-0.93, -0.08), (0.93, -0.08), (0, 1))),
    "trash": (
        _line((-0.9, -0.6), (0.9, -0.6)), _line((-0.3, -0.6), (-0.3, -0.95), (0.3, -0.95), (0.3, -0.6)),
        _line((-0.65, -0.6), (-0.5, 0.95), (0.5, 0.95), (0.65, -0.6)),
    ),
    "pen": (
        _area((0.55, -1), (1, -0.55), (-0.45, 0.9), (-0.9, 0.45)), _area((-0.98, 0.58), (-0.58, 0.98), (-1.1, 1.1)),
    ),
    "bell": (
        _area(
            (-0.6, 0.45), (-0.5, -0.5), (-0.2, -0.9), (0.2, -0.9), (0.5, -0.5), (0.6, 0.45), (0.95, 0.7), (-0.95, 0.7)
        ),
        _disc(0, 0.8, 0.25),
    ),
    "lock": (
        _area((-0.75, -0.1), (0.75, -0.1), (0.75, 0.95), (-0.75, 0.95)),
        _line((-0.5, -0.1), (-0.5, -0.6), (-0.3, -0.95), (0.3, -0.95), (0.5, -0.6), (0.5, -0.1)),
    ),
    "share": (
        _disc(-0.7, 0, 0.32), _disc(0.65, -0.75, 0.32), _disc(0.65, 0.75, 0.32),
        _line((0.65, -0.75), (-0.7, 0), (0.65, 0.75)),
    ),
    "flag": (_line((-0.7, 1), (-0.7, -1)), _area((-0.7, -1), (0.9, -0.55), (-0.7, 0))),
    "search": (_ring(-0.2, -0.2, 0.65), _line((0.3, 0.3), (1, 1))),
    "gear": (
        _ring(0, 0, 0.6),
        *(_line(inner, outer) for inner, outer in zip(_round(0, 0, (0.65,), 8), _round(0, 0, (1.05,), 8), strict=True)),
    ),
    "plus": (_line((-0.9, 0), (0.9, 0)), _line((0, -0.9), (0, 0.9))),
    "menu": tuple(_line((-0.9, y), (0.9, y)) for y in (-0.65, 0, 0.65)),
    "person": (
        _disc(0, -0.45, 0.45), _area((-0.9, 1), (-0.7, 0.4), (-0.35, 0.15), (0.35, 0.15), (0.7, 0.4), (0.9, 1)),
    ),
    "home": (_area((-1.05, 0), (0, -1), (1.05, 0)), _area((-0.7, 0), (0.7, 0), (0.7, 0.95), (-0.7, 0.95))),
}  # fmt: skip
"""Name -> parts."""

"""Ids of the simulator (`Cup|+01.50|+00.95|-00.20`) and their spelling in PDDL, which allows little punctuation."""

from __future__ import annotations

_SPELLING = (("|", "_bar_"), ("-", "_minus_"), ("+", "_plus_"), (".", "_dot_"), (",", "_comma_"))


def mangle(name: str) -> str:
    """Spell an id for PDDL."""
    for sign, word in _SPELLING:
        name = name.replace(sign, word)
    return name


def unmangle(name: str) -> str:
    """Undo `mangle`, up to upper and lower case (the engine writes everything in lower case)."""
    for sign, word in _SPELLING:
        name = name.replace(word, sign)
    return name


def position_of(name: str) -> tuple[float, float, float]:
    """Return x, height and z in metres from a thing's id in either spelling."""
    x, y, z = (float(part) for part in unmangle(name).split("|")[1:4])
    return x, y, z


def pose_of(location: str) -> tuple[int, int, int]:
    """Return grid column, grid row (units of 0.25 m) and quarter turns from a location's id in either spelling."""
    column, row, turns = (round(float(part)) for part in unmangle(location).split("|")[1:4])
    return column, row, turns % 4

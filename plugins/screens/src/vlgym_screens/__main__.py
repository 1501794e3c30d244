"""Measures the family: `python -m vlgym_screens speed`, `habits` (of blind.py) or `looks` (what a look is worth)."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter, defaultdict
from statistics import mean, median
from typing import Any

from vlgym.env.seeding import episode_seed
from vlgym.env.spec import EnvSpec

from .blind import find_kind
from .click import ScreensClick
from .find import ScreensFind
from .go import ScreensGo
from .look import ScreensLook
from .plugin import vlgym_envs
from .settings import ScreensSet

CLASSES: dict[str, Any] = {cls.__name__: cls for cls in (ScreensClick, ScreensGo, ScreensSet, ScreensFind, ScreensLook)}
GRID = tuple((x, y) for x in range(25, 1000, 50) for y in range(25, 1000, 25))
"""Places that a habit may choose, in thousandths of width and height."""


def make(spec: EnvSpec, **arguments: Any) -> Any:
    return CLASSES[spec.title](vlgym_spec=spec, **arguments)


def measure_speed(spec: EnvSpec, modality: str, episodes: int = 100) -> tuple[float, float]:
    """Return steps per second of random play, drawing included, and the median time of a reset in milliseconds."""
    env, resets, stepping, steps = make(spec, modality=modality), list[float](), 0.0, 0
    for number in range(episodes):
        begun = time.process_time()
        env.reset(seed=episode_seed(spec.id, "train", number))
        resets.append(time.process_time() - begun)
        over = False
        while not over:
            reply = env.action_space.sample()
            begun = time.process_time()
            _, _, terminated, truncated, _ = env.step(reply)
            stepping, steps, over = stepping + time.process_time() - begun, steps + 1, terminated or truncated
    return steps / stepping, 1000 * median(resets)


def count_places(spec: EnvSpec, split: str, episodes: int, **arguments: Any) -> dict[str, Counter[tuple[int, int]]]:
    """Return for each kind of element that a sentence may name how often each place of `GRID` hits what is named."""
    env, found = make(spec, modality="none", **arguments), defaultdict[str, Counter[tuple[int, int]]](Counter)
    for number in range(episodes):
        env.reset(seed=episode_seed(spec.id, split, number))
        x, y = 1000 / env.layout.width, 1000 / env.layout.height
        x1, y1, x2, y2 = env.aim.box
        kind = find_kind(env.task())
        found[kind].update(cell for cell in GRID if x1 * x <= cell[0] <= x2 * x and y1 * y <= cell[1] <= y2 * y)
        found[kind]["episodes"] += 1  # type: ignore[index]
    return found


def learn_habits(spec: EnvSpec, episodes: int = 3000) -> dict[str, tuple[int, int]]:
    """Return for each kind of element the place that hits it most often in train."""
    habits = {}
    for kind, places in sorted(count_places(spec, "train", episodes).items()):
        del places["episodes"]  # type: ignore[arg-type]
        habits[kind] = min(places, key=lambda cell: (-places[cell], cell))
    return habits


def play_looks(spec: EnvSpec, looks: int | None, level: int, episodes: int = 200) -> tuple[float, float]:
    """Return success and mean return of a player of ScreensLook.

    Args:
        spec: the card.
        looks: looks that it takes, at what is asked first; `None`: as many as needed. It guesses what it has not read.
        level: the difficulty level.
        episodes: of test.
    """
    env, won, earned = make(spec, modality="none", level=level), [], []
    rng = random.Random(f"looks {looks}")
    for number in range(episodes):
        _, info = env.reset(seed=episode_seed(spec.id, "test", number))
        over, taken = False, 0
        while not over:
            action = env.oracle()
            if looks is not None and taken < looks and action.startswith("answer"):
                action = "zoom(500, 500)"
            elif looks is not None and taken >= looks and not all(env.read):
                action = f'answer("{rng.choice(env.words())}")'
            taken += action.startswith("zoom(")
            _, _, terminated, truncated, info = env.step(env.parser.format([action]))
            over = terminated or truncated
        won.append(info["success"])
        earned.append(env.episode_return)
    return mean(won), mean(earned)


def main() -> None:
    """Print what the first argument asks for."""
    cards = {spec.title: spec for spec in vlgym_envs()}
    if sys.argv[1:] == ["habits"]:
        print(learn_habits(cards["ScreensClick"]))
    elif sys.argv[1:] == ["looks"]:
        for level in range(5):
            for looks in (0, 3, None):
                won, earned = play_looks(cards["ScreensLook"], looks, level)
                name = "as needed" if looks is None else f"always {looks}"
                print(f"level {level}  {name:<10} success {won:.3f}  return {earned:.3f}")
    else:
        for title, spec in cards.items():
            for modality in ("image", "none"):
                speed, reset = measure_speed(spec, modality)
                print(f"{title:<13} {modality:<6} {speed:7.0f} steps/s  reset {reset:.1f} ms")


if __name__ == "__main__":
    main()

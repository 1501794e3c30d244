"""Players that the tests measure: habits learnt on train, and scripted looks."""

import random
from collections import Counter, defaultdict
from statistics import mean
from typing import Any

from vlgym_screens.blind import find_kind

import vlgym
from vlgym.env.seeding import episode_seed

# Places that a habit may choose, in thousandths of width and height; the second with "grid".
GRID = tuple((x, y) for x in range(25, 1000, 50) for y in range(25, 1000, 25))
MIDDLES = tuple((x, y) for x in range(50, 1000, 100) for y in range(50, 1000, 100))
Places = Counter[tuple[int, int]]


def count_places(env_id: str, split: str, episodes: int, **arguments: Any) -> dict[str, Places]:
    """Return for each kind of element how often each place (with marks, number) hits what is named."""
    env = vlgym.make(env_id, modality="none", **arguments)
    hits = defaultdict[str, Places](Counter)
    for number in range(episodes):
        env.reset(seed=episode_seed(env_id, split, number))
        x, y = 1000 / env.layout.width, 1000 / env.layout.height
        x1, y1, x2, y2 = env.aim.box
        kind = find_kind(env.task())
        cells = MIDDLES if env.coordinates == "grid" else GRID
        if env.marks:
            hits[kind][env.live().index(env.aim) + 1, 0] += 1
        else:
            inside = (c for c in cells if x1 * x <= c[0] <= x2 * x and y1 * y <= c[1] <= y2 * y)
            hits[kind].update(inside)
        hits[kind]["episodes"] += 1  # type: ignore[index]
    return hits


def learn_habits(env_id: str, episodes: int = 3000, **arguments: Any) -> dict[str, tuple[int, int]]:
    """Return for each kind of element the place that hits it most often in train."""
    habits = {}
    for kind, places in sorted(count_places(env_id, "train", episodes, **arguments).items()):
        del places["episodes"]  # type: ignore[arg-type]
        habits[kind] = min(places, key=lambda cell: (-places[cell], cell))
    return habits


def play_looks(env_id: str, looks: int | None, level: int, episodes: int = 200) -> tuple[float, float]:
    """Return success and mean return of a player of ScreensLook on test episodes.

    It takes `looks` looks (`None`: as many as needed), and guesses what it has not read.
    """
    env, won, earned = vlgym.make(env_id, modality="none", level=level), [], []
    rng = random.Random(f"looks {looks}")
    for number in range(episodes):
        _, info = env.reset(seed=episode_seed(env_id, "test", number))
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

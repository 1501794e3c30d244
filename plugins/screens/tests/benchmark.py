"""The figures of docs/screens.md: what a look is worth, what a habit wins, and speed.

python plugins/screens/tests/benchmark.py
"""

import json
import sys
import time
from pathlib import Path
from statistics import mean, median
from typing import Any

from vlgym_screens.blind import CELLS
from vlgym_screens.plugin import vlgym_envs

import vlgym
from baselines.studies.processes import RESULTS_FOLDER, note_made
from vlgym.env.seeding import episode_seed

sys.path.insert(0, str(Path(__file__).parent))
from players import count_places, learn_habits, play_looks

PLAYERS = {"never looks": 0, "looks three times": 3, "looks as needed (oracle)": None}


def measure_looks() -> list[dict[str, Any]]:
    """Return success and mean return of each player of ScreensLook at each level, on 200 test episodes."""
    return [
        {"figure": "look", "player": player, "level": level, "success": success, "return": earned}
        for player, looks in PLAYERS.items()
        for level in range(5)
        for success, earned in [play_looks("vlgym/ScreensLook-v0", looks, level)]
    ]


def measure_habits() -> list[dict[str, Any]]:
    """Return what a click where the named kind mostly stands wins in 1,000 test episodes."""
    rows = []
    for level in range(5):
        places = count_places("vlgym/ScreensClick-v0", "test", 1000, level=level)
        won = sum(found[CELLS[kind]] for kind, found in places.items() if kind in CELLS)
        rows.append({"figure": "habit", "level": level, "success": won / 1000})
    return rows


FORMS: dict[str, dict[str, Any]] = {"marks": {"marks": True}, "grid": {"coordinates": "grid"}}


def measure_forms() -> list[dict[str, Any]]:
    """Return what a learnt click and random ones win in each form of ScreensClick, at level 0."""
    rows, env_id = [], "vlgym/ScreensClick-v0"
    for form, arguments in FORMS.items():
        habits = learn_habits(env_id, level=0, **arguments)
        places = count_places(env_id, "test", 1000, level=0, **arguments)
        won = sum(found[habits[kind]] for kind, found in places.items() if kind in habits)
        env, shares = vlgym.make(env_id, modality="none", level=0, **arguments), []
        for number in range(1000):
            env.reset(seed=episode_seed(env_id, "test", number))
            shares.append(1 / len(env.live()))
        figures = {"success": won / 1000, "random": mean(shares)}
        rows.append({"figure": "habit", "form": form, "level": 0, **figures})
    return rows


def measure_speed(env_id: str, modality: str, episodes: int = 100) -> tuple[float, float]:
    """Return steps per second of processor time with drawing, and a reset's median milliseconds."""
    env, resets, stepping, steps = vlgym.make(env_id, modality=modality), list[float](), 0.0, 0
    for number in range(episodes):
        begun = time.process_time()
        env.reset(seed=episode_seed(env_id, "train", number))
        resets.append(time.process_time() - begun)
        over = False
        while not over:
            reply = env.action_space.sample()
            begun = time.process_time()
            _, _, terminated, truncated, _ = env.step(reply)
            stepping, steps = stepping + time.process_time() - begun, steps + 1
            over = terminated or truncated
    return steps / stepping, 1000 * median(resets)


def main() -> None:
    """Write docs/studies/screens.json."""
    rows = measure_looks() + measure_habits() + measure_forms()
    for spec in vlgym_envs():
        drawn, plain = (measure_speed(spec.id, modality) for modality in ("image", "none"))
        speed = {"drawn": drawn[0], "plain": plain[0], "reset": drawn[1]}
        rows.append({"figure": "speed", "id": spec.id, **speed})
    note_made("screens")
    lines = ",\n".join(f" {json.dumps(row)}" for row in rows)
    (RESULTS_FOLDER / "screens.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()

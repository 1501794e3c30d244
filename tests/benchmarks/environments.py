"""Speed of environments: the processor time of a step and of a reset with the picture drawn.

One environment of each family is measured against `vlgym/NumberLine-v1` in the same run.
"""

from __future__ import annotations

import time

from report import finish, parse, table

from vlgym.play.policies import RandomPolicy
from vlgym.play.rollout import Runner
from vlgym.registry import get_registry
from vlgym.registry.making import make

IDS = {  # steps that are timed
    "vlgym/NumberLine-v1": 2000, "vlgym/SeeCount-v0": 1000, "vlgym/OneRoom-v1": 500, "vlgym/Sokoban-v0": 2000,
    "vlgym/TicTacToe-v0": 1000, "vlgym/ALFWorld-v1": 200, "vlgym/WebShop-v1": 60, "vlgym/Football-v1": 200,
    "vlgym/WebUI-v1": 6,
}  # fmt: skip


def measure(env_id: str, steps: int) -> tuple[float, float]:
    """Return the milliseconds of processor time and of the clock per turn of random play, resets and pictures included.

    A browser works in processes of other ids: only the clock sees it.
    """
    runner, policy = Runner([make(env_id)]), RandomPolicy()
    try:
        runner.step(policy)  # starts engine or browser
        cpu, clock = time.process_time(), time.perf_counter()
        for _ in range(steps):
            runner.step(policy)
        return (1e3 * (time.process_time() - cpu) / steps, 1e3 * (time.perf_counter() - clock) / steps)
    finally:
        runner.close()


def main() -> None:
    """Measure every installed environment of the list."""
    parse(__doc__ or "")
    found = {env_id: measure(env_id, steps) for env_id, steps in IDS.items() if env_id in get_registry().specs}
    base = found["vlgym/NumberLine-v1"][1]
    rows = [
        [f"`{env_id}`", IDS[env_id], f"{cpu:.2f}", f"{clock:.2f}", f"{clock / base:.1f}"]
        for env_id, (cpu, clock) in found.items()
    ]
    head = ["environment", "turns timed", "processor ms per turn", "ms per turn", "times NumberLine's"]
    body = "One environment, random legal replies, resets and pictures included, after a first turn.\n\n"
    finish("environments", "Environments", body + table(head, rows), ["vlgym", "gymnasium", "numpy", "pillow"])


if __name__ == "__main__":
    main()

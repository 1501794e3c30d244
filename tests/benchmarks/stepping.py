"""Speed of batches of environments in this process, in two worker processes and on two Ray
actors."""

import statistics
import time
from typing import Any

from report import finish, make_parser, table

from vlgym.env_groups import open_group
from vlgym.play.policies import RandomPolicy
from vlgym.play.rollout import Runner

WAYS, ONE_WORKER = ("local", "processes:2", "ray:2"), ("local", "processes:1", "ray:1")
BATCHES = (("vlgym/WebShop-v1", 16, 6), ("vlgym/Football-v1", 16, 6), ("vlgym/OneRoom-v1", 64, 8))
OVERHEAD, ROUNDS = "vlgym/NumberLine-v1", 3


def count_steps(way: str, env_id: str, envs: int, steps: int, **kwargs: Any) -> float:
    """Steps per second of a batch after one step."""
    group = open_group(way, envs=envs, limit=600)
    runner = Runner([group.make(env_id, **kwargs) for _ in range(envs)])
    policy = RandomPolicy()
    try:
        runner.step(policy)
        begun = time.perf_counter()
        for _ in range(steps):
            runner.step(policy)
        return envs * steps / (time.perf_counter() - begun)
    finally:
        runner.close()
        group.close()


def measure(env_id: str, envs: int, steps: int, ways: tuple[str, ...], **kwargs: Any) -> list[list[float]]:
    """Return the steps per second of each way, in rounds that take turns."""
    found: list[list[float]] = [[] for _ in ways]
    for _ in range(ROUNDS):
        for way, speeds in zip(ways, found, strict=True):
            speeds.append(count_steps(way, env_id, envs, steps, **kwargs))
    return found


def show(found: list[float]) -> str:
    """Median, least and most."""
    return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def main() -> None:
    make_parser(__doc__).parse_args()
    batches, overhead = [], []
    for env_id, envs, steps in BATCHES:
        batches.append([f"{envs} {env_id}", *map(show, measure(env_id, envs, steps, WAYS))])
    for envs, steps in ((1, 300), (16, 40)):
        speeds = measure(OVERHEAD, envs, steps, ONE_WORKER, image_size=(336, 336))
        overhead.append([envs, *(show([1000 / speed for speed in each]) for each in speeds)])
    body = (
        f"Random policy; median, least and most of {ROUNDS} rounds that take turns. Steps per second of a batch:\n\n"
        f"{table(['batch', *WAYS], batches)}\n\n"
        f"Milliseconds per step of {OVERHEAD} with a picture of 336 x 336 pixels, drawn and sent, in batches of this "
        f"many environments on one worker:\n\n{table(['environments', *ONE_WORKER], overhead)}"
    )
    finish("stepping", "Environments in other processes", body, ["vlgym", "ray", "numpy"])


if __name__ == "__main__":
    main()

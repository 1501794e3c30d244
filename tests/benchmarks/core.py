"""Speed of the core: steps of NumberLine with its picture, start-up, and a turn in one environment
of each family.

Ratios: steps/s against the same loop on Gymnasium's `Blackjack-v1` (text only, no image), start-up
against `import gymnasium`, turns against `vlgym/NumberLine-v1`.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
from report import finish, make_parser, table

from vlgym.play.policies import RandomPolicy
from vlgym.play.rollout import Runner
from vlgym.registry import get_registry
from vlgym.registry.making import make

STEPS, ROUNDS, STARTS = 6000, 5, 7
TURNS = {  # turns that are timed
    "vlgym/NumberLine-v1": 2000, "vlgym/SeeCount-v0": 1000, "vlgym/OneRoom-v1": 500,
    "vlgym/Sokoban-v0": 2000, "vlgym/TicTacToe-v0": 1000, "vlgym/ALFWorld-v1": 200,
    "vlgym/WebShop-v1": 60, "vlgym/Football-v1": 200, "vlgym/WebUI-v1": 6,
}  # fmt: skip


def count_steps(env_id: str) -> float:
    """Return steps per second of the random policy, resets included."""
    env = gymnasium.make(env_id).unwrapped
    env.reset(seed=0)
    env.action_space.seed(0)
    begun = time.perf_counter()
    for _ in range(STEPS):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    return STEPS / (time.perf_counter() - begun)


def time_command(*command: str) -> float:
    """Return the median wall time of a whole process, in seconds, after one warm-up."""
    times = []
    for _ in range(STARTS + 1):
        begun = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def time_turn(env_id: str) -> tuple[float, float]:
    """Return the milliseconds of the processor and of the clock per turn of random play, resets and
    pictures included.

    A browser works in other processes: only the clock sees it.
    """
    runner, policy, turns = Runner([make(env_id)]), RandomPolicy(), TURNS[env_id]
    try:
        runner.step(policy)  # starts engine or browser
        cpu, clock = time.process_time(), time.perf_counter()
        for _ in range(turns):
            runner.step(policy)
        seconds = time.process_time() - cpu, time.perf_counter() - clock
        return 1e3 * seconds[0] / turns, 1e3 * seconds[1] / turns
    finally:
        runner.close()


def main() -> None:
    make_parser(__doc__).parse_args()
    packages = ["vlgym", "gymnasium", "numpy", "pillow"]
    rounds = [(count_steps("vlgym/NumberLine-v1"), count_steps("Blackjack-v1")) for _ in range(ROUNDS)]
    steps, reference = map(statistics.median, zip(*rounds, strict=True))
    bare = time_command(sys.executable, "-c", "import gymnasium")
    imported = time_command(sys.executable, "-c", "import vlgym")
    listed = time_command(str(Path(sys.executable).with_name("vlgym")), "list")
    rows = [
        ["`vlgym/NumberLine-v1` steps/s, image each step", f"{steps:,.0f}",
         f"{steps / reference:.2f} x Gymnasium's `Blackjack-v1`"],
        ["`import vlgym`, s", f"{imported:.2f}", f"{imported / bare:.2f} x `import gymnasium`"],
        ["`vlgym list`, s", f"{listed:.2f}", f"{listed / bare:.2f} x `import gymnasium`"],
    ]  # fmt: skip
    body = f"Medians of {ROUNDS} rounds of {STEPS:,} steps; start-up: of {STARTS} processes.\n\n"
    finish("core", "Core speed", body + table(["what", "measured", "ratio"], rows), packages)

    times = {env_id: time_turn(env_id) for env_id in TURNS if env_id in get_registry().specs}
    base = times["vlgym/NumberLine-v1"][1]
    rows = [
        [f"`{env_id}`", TURNS[env_id], f"{cpu:.2f}", f"{clock:.2f}", f"{clock / base:.1f}"]
        for env_id, (cpu, clock) in times.items()
    ]
    head = ["environment", "turns timed", "processor ms per turn", "ms per turn", "x NumberLine"]
    body = "Random legal replies, after a first turn.\n\n"
    finish("core", "Environments", body + table(head, rows), packages)


if __name__ == "__main__":
    main()

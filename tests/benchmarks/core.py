"""Speed of the core: NumberLine steps/s with the image drawn at each step, and the time of `import vlgym` and
`vlgym list`.

Ratios: steps/s against the same loop on Gymnasium's `Blackjack-v1` (text only, no image), start-up against `import
gymnasium`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
from report import finish, parse, table

import vlgym  # noqa: F401  (registers the ids)

STEPS = 6000
ROUNDS = 5
STARTS = 7


def count_steps(env_id: str, **kwargs: object) -> float:
    """Return steps per second of the random policy, resets included."""
    env = gymnasium.make(env_id, **kwargs).unwrapped
    env.reset(seed=0)
    env.action_space.seed(0)
    begun = time.perf_counter()
    for _ in range(STEPS):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    return STEPS / (time.perf_counter() - begun)


def time_command(command: list[str]) -> float:
    """Return the median wall time of a whole process, in seconds, after one warm-up."""
    times = []
    for _ in range(STARTS + 1):
        begun = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def main() -> None:
    """Measure in interleaved rounds and report medians."""
    parse(__doc__ or "")
    ours, plain = [], []
    for _ in range(ROUNDS):
        ours.append(count_steps("vlgym/NumberLine-v1"))
        plain.append(count_steps("Blackjack-v1"))
    steps, reference = statistics.median(ours), statistics.median(plain)
    bare = time_command([sys.executable, "-c", "import gymnasium"])
    imported = time_command([sys.executable, "-c", "import vlgym"])
    listed = time_command([str(Path(sys.executable).with_name("vlgym")), "list"])
    rows = [
        ["`vlgym/NumberLine-v1` steps/s, image each step", f"{steps:,.0f}",
         f"{steps / reference:.2f} x Gymnasium's `Blackjack-v1`"],
        ["`import vlgym`, s", f"{imported:.2f}", f"{imported / bare:.2f} x `import gymnasium` ({bare:.2f} s)"],
        ["`vlgym list`, s", f"{listed:.2f}", f"{listed / bare:.2f} x `import gymnasium`"],
    ]  # fmt: skip
    body = f"One process, median of {ROUNDS} rounds of {STEPS:,} steps; start-up: median of {STARTS} processes.\n\n"
    packages = ["vlgym", "gymnasium", "numpy", "pillow"]
    finish("core", "Core speed", body + table(["what", "measured", "ratio"], rows), packages)


if __name__ == "__main__":
    main()

"""What vlgym adds to MiniWorld: steps/s of `vlgym/OneRoom-v0` over raw MiniWorld at the same size, seeds and
actions.

Interleaved rounds in one run, medians of the rounds' ratios. Raw MiniWorld is measured twice: in the same
process (same OpenGL settings), and in a process of its own with the driver's defaults (as many drawing threads
as cores, where vlgym uses none so that workers can be forked).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np
from report import finish, parse_write, table

STEPS = 250
ROUNDS = 9
SIZES = (224, 80)
ACTIONS = np.random.default_rng(0).integers(0, 3, STEPS).tolist()
NAMES = ("turn left", "turn right", "move forward")


def run_ours(env) -> float:
    """Return the seconds of `STEPS` steps of the vlgym environment, resets included."""
    replies = [f"<action>{NAMES[action]}</action>" for action in ACTIONS]
    env.reset(seed=0)
    begun = time.perf_counter()
    for turn, reply in enumerate(replies):
        _, _, terminated, truncated, _ = env.step(reply)
        if terminated or truncated:
            env.reset(seed=turn)
    return time.perf_counter() - begun


def run_raw(env) -> float:
    """Return the seconds of `STEPS` steps of raw MiniWorld, resets included."""
    env.reset(seed=0)
    begun = time.perf_counter()
    for turn, action in enumerate(ACTIONS):
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset(seed=turn)
    return time.perf_counter() - begun


def serve_raw(size: int) -> None:
    """Be the process of its own: one timing for each line that comes in."""
    import pyglet

    pyglet.options["headless"] = True
    import gymnasium
    import miniworld  # noqa: F401

    env = gymnasium.make("MiniWorld-OneRoom-v0", obs_width=size, obs_height=size).unwrapped
    for _ in sys.stdin:
        print("seconds", run_raw(env), flush=True)


def measure(size: int) -> list[list[object]]:
    """Return two table rows for one image size."""
    import vlgym

    ours = vlgym.make("vlgym/OneRoom-v0", image_size=(size, size))
    run_ours(ours)  # opens OpenGL our way before raw MiniWorld is imported
    import gymnasium

    raw = gymnasium.make("MiniWorld-OneRoom-v0", obs_width=size, obs_height=size).unwrapped
    # vlgym has set these two for this process; the other one shall have the driver's defaults.
    defaults = {
        name: value for name, value in os.environ.items() if name not in ("LP_NUM_THREADS", "MESA_SHADER_CACHE_DISABLE")
    }
    apart = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(size)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=defaults,
    )  # fmt: skip

    def run_apart() -> float:
        assert apart.stdin is not None
        assert apart.stdout is not None
        apart.stdin.write("go\n")
        apart.stdin.flush()
        for line in apart.stdout:
            if line.startswith("seconds "):
                return float(line.split()[1])
        raise SystemExit("the process with raw MiniWorld ended early")

    for warm_up in (lambda: run_ours(ours), lambda: run_raw(raw), run_apart):
        warm_up()
    rounds = [(run_ours(ours), run_raw(raw), run_apart()) for _ in range(ROUNDS)]
    apart.stdin.close()  # type: ignore[union-attr]
    apart.wait(timeout=30)
    raw.close()
    ours.close()
    rate = [STEPS / statistics.median(times) for times in zip(*rounds, strict=True)]
    same, own = (statistics.median(times[which] / times[0] for times in rounds) for which in (1, 2))
    picture = f"{size} x {size}"
    return [
        [picture, "same process", f"{rate[0]:.0f}", f"{rate[1]:.0f}", f"**{same:.2f}**"],
        [picture, "own process, driver's defaults", f"{rate[0]:.0f}", f"{rate[2]:.0f}", f"{own:.2f}"],
    ]


def main() -> None:
    """Measure in interleaved rounds and report medians."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parse_write(__doc__ or "", parser)
    if options.serve:
        serve_raw(options.serve)
        return
    rows = [row for size in SIZES for row in measure(size)]
    header = ["image", "raw MiniWorld runs in", "vlgym steps/s", "raw steps/s", "vlgym / raw"]
    body = (
        f"{ROUNDS} interleaved rounds of {STEPS} steps each, resets included; "
        "median rates, and the median of the rounds' ratios. "
        f"Target: at least 0.90 in the same process at 224 x 224.\n\n{table(header, rows)}\n\n"
        "vlgym parses the reply, writes text and info, and copies the frame; "
        "it saves the copy of the depth buffer, which it never reads."
    )
    finish(
        "miniworld_overhead",
        "MiniWorld through vlgym",
        body,
        ["vlgym-miniworld", "miniworld", "gymnasium", "numpy"],
        options.write,
    )


if __name__ == "__main__":
    main()

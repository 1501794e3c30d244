"""How often the MiniWorld oracles win: 50 seeds of every id (20 of the two with the longest episodes), and what
a plan costs.

The picture is small (32 x 32): the oracles do not look at it. Name ids to play only those, for example `OneRoom
Maze`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from report import finish, parse_write, table

import vlgym

SEEDS = 50
LONG = {"Maze": 20, "CollectHealth": 20}


def play(name: str, seeds: int) -> list[object]:
    """Return a table row: wins, turns, return, and the time of the slowest answer of each episode."""
    env = vlgym.make(f"vlgym/{name}-v0", image_size=(32, 32))
    wins, turns, returns, slowest = 0, [], [], []
    for seed in range(seeds):
        env.reset(seed=seed)
        total, count, worst, ended, info = 0.0, 0, 0.0, False, {}
        while not ended:
            begun = time.perf_counter()
            reply = env.solve()
            worst = max(worst, time.perf_counter() - begun)
            if reply is None:
                break
            _, reward, terminated, truncated, info = env.step(reply)
            total, count, ended = total + reward, count + 1, terminated or truncated
        wins += bool(info.get("success", False))
        turns.append(count)
        returns.append(total)
        slowest.append(worst * 1000)
    limit = env.max_turns
    env.close()
    return [
        f"`vlgym/{name}-v0`", f"{wins}/{seeds}", f"{np.mean(turns):.0f} / {max(turns)}", limit,
        f"{np.mean(returns):.3f}", f"{np.mean(slowest):.0f} / {max(slowest):.0f}",
    ]  # fmt: skip


def main() -> None:
    """Play every id and report."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="ids without vlgym/ and -v0; default: all")
    options = parse_write(__doc__ or "", parser)
    specs = vlgym.get_registry().specs.values()
    names = options.names or [spec.title for spec in specs if spec.family == "miniworld" and spec.oracle != "none"]
    rows = [play(name, LONG.get(name, SEEDS)) for name in names]
    header = ["id", "won", "turns, mean / max", "limit", "mean return", "slowest answer of an episode, ms, mean / max"]
    body = (
        f"Seeds 0 to {SEEDS - 1} (0 to 19 where 20 are given), default arguments. "
        f"Promised: at least 49 of 50 on Hallway, OneRoom, FourRooms and WallGap.\n\n{table(header, rows)}"
    )
    finish(
        "miniworld_oracle",
        "Oracles of the MiniWorld plugin",
        body,
        ["vlgym-miniworld", "miniworld", "numpy"],
        options.write,
    )


if __name__ == "__main__":
    main()

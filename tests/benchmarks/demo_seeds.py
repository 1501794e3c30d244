"""What `make demo` does, for five seeds: time, held-out success before and after reinforcement learning, curves; and
how the trained models reply, sampled and greedy, at the token limit of the training and at four times that.

    python tests/benchmarks/demo_seeds.py --write

Each seed runs in a process of its own with the demo's options of `python -m baselines.vldac`. The time is the training
command's; making the virtual environment comes on top and depends on the package index.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from reply_end import GREEDY, SAMPLED, judge
from report import PAGES, finish, parse_write, table

OPTIONS = ("--env", "vlgym/NumberLine-v1", "--warm.target", "0.25", "--kl-coef", "0.02")
"""As the Makefile has them."""


def run_seed(seed: int, folder: Path) -> dict[str, Any]:
    """Train once; return seconds, the two evaluations and the warm start's length."""
    out = folder / f"seed{seed}"
    command = [sys.executable, "-m", "baselines.vldac", *OPTIONS, "--seed", str(seed), "--out", str(out)]
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begun
    evaluations = json.loads((out / "evaluation.json").read_text())
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    phases = ("rollout", "reference", "check", "update")
    learning = sum(row[f"seconds/{phase}"] for row in rows for phase in phases)
    return {
        "seed": seed, "seconds": seconds, "learning": learning, "before": evaluations[0], "after": evaluations[-1],
        "judged": judge("parser", out),
    }  # fmt: skip


def main() -> None:
    """Run the seeds one after another and write page and curves."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    args = parse_write(__doc__ or "", parser)
    with tempfile.TemporaryDirectory() as name:
        results = [run_seed(seed, Path(name)) for seed in args.seeds]
        if args.write:
            for seed in args.seeds:
                shutil.copy(Path(name) / f"seed{seed}" / "curve.png", PAGES / f"demo_seed{seed}.png")
            shutil.copy(PAGES / f"demo_seed{args.seeds[0]}.png", PAGES.parent / "images" / "demo_curve.png")
    lines = [
        [
            result["seed"],
            show(result["before"]),
            show(result["after"]),
            f"{result['after']['invalid_rate']:.3f}",
            f"{result['after']['env_steps']:,}",
            f"{result['learning']:.0f} s",
            f"{result['seconds']:.0f} s",
        ]
        for result in results
    ]
    header = ["seed", "success before RL", "after RL", "invalid replies", "env steps of RL", "RL", "whole command"]
    curves = "\n".join(f"![seed {seed}](demo_seed{seed}.png)" for seed in args.seeds)
    body = (
        f"`python -m baselines.vldac {' '.join(OPTIONS)} --seed N`, every seed that was run. Success is "
        "strict (no wrong move) over 200 held-out episodes, sampling at temperature 1, with 95 % Wilson intervals. "
        "Target: at most 0.6 before, at least 0.95 after, the whole of `make demo` under 6 minutes "
        "beside its downloads.\n\n"
    )
    names = [f"{name} x{times}" for times in (1, 4) for name in (SAMPLED, GREEDY)]
    judged = [
        [result["seed"], *(f"{each['success']:.3f}, {each['invalid_rate']:.3f}" for each in pick(result, names))]
        for result in results
    ]
    replies = (
        "\n\nThe same models again, 200 episodes each: success and share of unreadable replies, sampled and greedy, at "
        "the token limit of the training (x1) and at four times that (x4). Target: success of at least 0.95 and at "
        "most 0.02 unreadable everywhere.\n\n" + table(["seed", *names], judged) + "\n\n"
    )
    finish(
        "demo_seeds",
        "The demo",
        body + table(header, lines) + replies + curves,
        ["vlgym", "torch", "transformers"],
        args.write,
    )


def pick(result: dict[str, Any], names: list[str]) -> list[dict[str, float]]:
    """The evaluations of a seed's model."""
    return [result["judged"][name] for name in names]


def show(report: dict[str, Any]) -> str:
    """Success with its interval."""
    return f"{report['success']:.3f} [{report['success_low']:.3f}, {report['success_high']:.3f}]"


if __name__ == "__main__":
    main()

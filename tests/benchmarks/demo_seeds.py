"""Results of `make demo` with five seeds: time, and held-out success before and after reinforcement learning.

Each seed is a process with the demo's options of `python -m baselines.vldac`.
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

from report import finish, parse, table

from baselines.plugin import make_hf
from baselines.runs.logs import read_rows
from vlgym.evaluation import evaluate

CURVE = Path(__file__).parents[2] / "docs" / "images" / "demo_curve.png"
OPTIONS = (
    "--env", "vlgym/NumberLine-v1", "--warm.reading", "0.995", "--kl-coef", "0.02", "--gamma", "0.5",
    "--target-kl", "0.03", "--num-envs", "64", "--rollout-steps", "4", "--updates", "42",
)  # fmt: skip
"""As the Makefile has them."""


def run_seed(seed: int, out: Path) -> list[object]:
    """Train once; return a row of the table."""
    command = [sys.executable, "-m", "baselines.vldac", *OPTIONS, "--seed", str(seed), "--out", str(out)]
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begun
    before, *_, after = json.loads((out / "evaluation.json").read_text())
    rows = read_rows(out / "log.jsonl")
    explained = [row["value/explained_variance"] or 0.0 for row in rows]
    greedy = evaluate(OPTIONS[1], make_hf(str(out / "model"), temperature=0), episodes=200).to_dict()
    return [
        seed, show(before), show(after), show(greedy), show(after["grey"]), f"{sum(explained[4:15]) / 11:.2f}",
        f"{min(explained[15:]):.2f}", f"{max(row['loss/kl'] for row in rows):.2f}", f"{seconds:.0f} s",
    ]  # fmt: skip


def show(report: dict[str, Any]) -> str:
    """Success with its interval."""
    return f"{report['success']:.3f} [{report['success_low']:.3f}, {report['success_high']:.3f}]"


def main() -> None:
    """Run the seeds one after another; with `--write` the first one's curve is the README's."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--write", action="store_true", help="replace docs/images/demo_curve.png")
    args = parse(__doc__ or "", parser)
    with tempfile.TemporaryDirectory() as name:
        rows = [run_seed(seed, Path(name) / f"seed{seed}") for seed in args.seeds]
        if args.write:
            shutil.copy(Path(name) / f"seed{args.seeds[0]}" / "curve.png", CURVE)
    header = [
        "seed", "success before RL", "after RL", "greedy", "pictures greyed", "explained variance, updates 5 to 15",
        "lowest after", "largest KL of an update", "whole command",
    ]  # fmt: skip
    body = (
        f"`python -m baselines.vldac {' '.join(OPTIONS)} --seed N`, every seed that was run. Success is strict "
        "(no wrong move) over 200 held-out episodes, sampling at temperature 1 unless it says greedy, with 95 % Wilson "
        "intervals.\n\n"
    )
    finish("demo_seeds", "The demo", body + table(header, rows), ["vlgym", "torch", "transformers"])


if __name__ == "__main__":
    main()

"""Do two checkouts train the same model? Each command runs with a fixed seed in both, and every bit is compared.

    python tests/benchmarks/same_numbers.py --other ../vlgym-before

For changes that must not move a number, such as a new layout of the code. Compared are the tensors of the newest
checkpoint (weights, optimizers, buffers), the log without its times, the evaluations and, for `sft`, the model. What
only one of the two saves is listed; it is no difference where a learner stopped keeping something that it never used.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

ROOT = Path(__file__).parents[2]
WARM = ("--warm.steps", "4", "--warm.samples", "64", "--warm.batch", "8", "--warm.check-every", "50")
RUN = (
    "--updates", "2", "--num-envs", "4", "--rollout-steps", "3", "--minibatch", "6", "--image-tokens", "4",
    "--max-new-tokens", "12", "--eval-episodes", "3", "--save-every", "1", "--threads", "1", "--invalid-penalty", "0.1",
    *WARM,
)  # fmt: skip
GROUPS = ("--group", "2", "--minibatch", "2", "--lr", "1e-3")
CASES: dict[str, tuple[str, ...]] = {
    "vldac": ("baselines.vldac", *RUN, "--value-warmup", "1"),
    "vldac, adapters and halves": (
        "baselines.vldac", *RUN, "--value-warmup", "0", "--lora.rank", "2", "--double-buffer",
    ),
    "vldac, flat, vision, tokens": (
        "baselines.vldac", *RUN, "--value-warmup", "0", "--scoring", "flat", "--train-vision", "--micro-tokens", "300",
        "--no-stop-gradient",
    ),
    "rl4vlm": ("baselines.rl4vlm", *RUN),
    "loop": ("baselines.loop", *RUN, *GROUPS, "--reward.normalise"),
    "grpo": ("baselines.grpo", *RUN, *GROUPS),
    "archer": ("baselines.archer", *RUN, "--critic-warmup", "1", "--critic-steps", "3", "--kl-coef", "0.1"),
    "sft": ("baselines.sft", "--threads", "1", "--image-tokens", "4", *WARM),
    "eval": (
        "vlgym", "eval", "--policy", "hf:tiny", "--episodes", "3", "--max-tokens", "8", "--no-probe",
        "--policy-arg", "threads=1",
    ),
}  # fmt: skip


def results(tree: Path, python: str, case: str, out: Path) -> tuple[dict[str, torch.Tensor], Any]:
    """Run a command in a checkout; return its tensors and its other numbers."""
    module, *options = CASES[case]
    path = os.pathsep.join([str(tree), *map(str, sorted(tree.glob("plugins/*/src")))])
    command = [python, "-m", module, *options, "--env", "vlgym/NumberLine-v0", "--seed", "3", "--out", str(out)]
    out.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, cwd=tree, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} in {tree} failed:\n{done.stdout}\n{done.stderr}")
    if module == "vlgym":
        lines = [json.loads(line) for line in (out / "metadata.jsonl").read_text().splitlines()]
        return {}, [{name: value for name, value in line.items() if name != "usage"} for line in lines]
    if module == "baselines.sft":
        return load_file(out / "model.safetensors"), json.loads((out / "warm.json").read_text())["report"]["success"]
    newest = sorted((out / "checkpoints").glob("update-*"))[-1]
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    plain = [{k: v for k, v in row.items() if not k.startswith(("seconds", "speed"))} for row in rows]
    return load_file(newest / "tensors.safetensors"), [plain, json.loads((out / "evaluation.json").read_text())]


def agree(one: Any, other: Any) -> bool:
    """Whether two records say the same wherever both say something: a newer version may note more."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(agree(one[name], other[name]) for name in (one.keys() & other.keys()) - {"crc32"})
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(agree, one, other))
    return bool(one == other)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path, required=True, help="the other checkout, for example from git worktree")
    parser.add_argument("--python", default=sys.executable, help="interpreter for the other checkout")
    parser.add_argument("--case", choices=list(CASES), help="only this one")
    args = parser.parse_args()
    different = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number, case in enumerate([args.case] if args.case else CASES):
            here, report = results(ROOT, sys.executable, case, Path(scratch) / "here" / str(number))
            there, other = results(args.other.resolve(), args.python, case, Path(scratch) / "there" / str(number))
            shared = here.keys() & there.keys()
            moved = [name for name in shared if not torch.equal(here[name], there[name])]
            alone = sorted({name.split(".")[0] for name in here.keys() ^ there.keys()})
            equal = agree(report, other)
            same = not moved and equal
            different += not same
            numbers = "equal" if equal else "other"
            only = f"; in one only: {', '.join(alone)}" if alone else ""
            verdict = "the same" if same else "DIFFERENT"
            tensors = f"{len(shared) - len(moved)} of {len(shared)} tensors equal"
            print(f"{case:28s} {verdict}: {tensors}, {numbers} numbers{only}")
    sys.exit(f"{different} of the cases differ" if different else 0)


if __name__ == "__main__":
    main()

"""Curricula compared: held-out success on the highest level of NumberLine, and the area under it, at a fixed budget.

    python tests/benchmarks/curricula.py --seeds 0 1 2 --record docs/studies/curricula.jsonl
    python tests/benchmarks/curricula.py --table --record docs/studies/curricula.jsonl

For each seed a warm start on all levels, shared by the samplers; then a run of VL-DAC with each. A run that ends is a
line of --record, with its CPU minutes; given again, the command goes on with what is missing, a killed run included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from report import finish, parse, table

from baselines.engine.plain import make_engine
from baselines.learning.environments import parsers_of
from baselines.learning.warm_start import WarmConfig, warm_start
from baselines.models.folders import NEW_TOKENS, Limits
from baselines.models.load import load_family
from baselines.models.lora import export_merged
from baselines.runs.checkpoint import checkpoints
from baselines.runs.logs import read_rows
from vlgym.play.curriculum import OWN, Course

ID = "vlgym/NumberLine-v1"
STEPS, POINTS, EPISODES = 10_240, 4, 32
"""Environment steps of a run, validations of it (on the highest level), episodes of each."""
PER_UPDATE = 256
OPTIONS = (
    "--env", ID, "--env-steps", str(STEPS), "--updates", str(STEPS // PER_UPDATE), "--warm.steps", "0",
    "--kl-coef", "0.02", "--gamma", "0.5", "--lr", "2e-4", "--eval-episodes", str(EPISODES),
    "--eval-every", str(STEPS // PER_UPDATE // POINTS), "--no-eval-before", "--record-every", "0", "--threads", "1",
)  # fmt: skip
"""Those of the demo, with a fixed budget and without a warm start."""


def make_start(seed: int, out: Path) -> None:
    """Imitate the noisy oracle on all levels alike."""
    family = load_family("tiny", image_tokens=None, seed=seed, dtype="float32", device="cpu", system=None)
    engine = make_engine(family, max_new_tokens=NEW_TOKENS, parsers=parsers_of([ID], {}))
    config = WarmConfig(target=0.25, samples=4096)
    warm_start(engine, [ID], config, seed=seed, course=Course("uniform", [ID], seed=seed))
    export_merged(family, out, Limits(engine.max_new_tokens, family.image_tokens, system=family.system).note())


def spend() -> float:
    """CPU minutes of this process's children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def play(name: str, seed: int, start: Path, out: Path) -> dict[str, Any]:
    """Train once, or go on; return the line of the record."""
    command = [sys.executable, "-m", "baselines.vldac"]
    resumed = bool(out.is_dir() and checkpoints(out / "checkpoints"))
    if resumed:
        command += ["--resume", "--out", str(out)]
    else:
        command += [*OPTIONS, "--model", str(start), "--seed", str(seed), "--curriculum", name, "--out", str(out)]
    before = spend()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    reports = json.loads((out / "evaluation.json").read_text())
    points = [(each["env_steps"], each["success"]) for each in reports if each["split"] == "val"]
    (last,) = [each for each in reports if each["split"] == "test"]
    area = sum((b - a) * (x + y) / 2 for (a, x), (b, y) in pairwise(points)) / STEPS
    levels = [row["curriculum/level_mean"] for row in read_rows(out / "log.jsonl")]
    return {
        "sampler": name, "seed": seed, "success": last["success"], "area": area, "points": points,
        "level_mean": [round(level, 2) for level in levels[:: max(1, len(levels) // 20)]], "resumed": resumed,
        "cpu_minutes": round(spend() - before, 2),
    }  # fmt: skip


def show(values: list[float]) -> str:
    """Mean and its standard error."""
    error = f" ± {stdev(values) / len(values) ** 0.5:.3f}" if len(values) > 1 else ""
    return f"{mean(values):.3f}{error}"


def main() -> None:
    """Play what is missing, seed by seed, then print the table of all there is."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--record", type=Path, required=True, help="JSON lines, one for each run that has ended")
    parser.add_argument("--folder", type=Path, default=Path("runs/curricula"), help="of the runs")
    parser.add_argument("--table", action="store_true", help="play nothing")
    args = parse(__doc__ or "", parser)
    lines = [json.loads(line) for line in args.record.read_text().splitlines()] if args.record.exists() else []
    for seed in [] if args.table else args.seeds:
        start = args.folder / f"start-{seed}"
        if not start.exists():
            make_start(seed, start)
        for name in OWN:
            if not any((line["sampler"], line["seed"]) == (name, seed) for line in lines):
                lines.append(play(name, seed, start, args.folder / f"{name}-{seed}"))
                with args.record.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    rows = []
    for name in OWN:
        if own := [line for line in lines if line["sampler"] == name]:
            minutes = [line["cpu_minutes"] for line in own if not line["resumed"]]
            rows.append(
                [f"`{name}`", len(own), *(show([line[key] for line in own]) for key in ("success", "area")),
                 show(minutes) if minutes else ""]
            )  # fmt: skip
    header = ("sampler", "seeds", "success on the highest level", "area under it", "CPU minutes")
    finish("curricula", f"Curricula on {ID}, {STEPS} steps", table(header, rows), ("torch", "transformers"))


if __name__ == "__main__":
    main()

"""Curricula compared at a fixed budget: held-out success on the highest level that is played, and
the area under it over the steps.

    python tests/benchmarks/curricula.py NumberLine --seeds 0 1 2 3 4
    python tests/benchmarks/curricula.py Sokoban --table

For each seed a warm start on all levels, shared by the samplers; then a run of VL-DAC with each. A
run that ends is a line of docs/studies/curricula-NAME.jsonl, with its CPU minutes; given again, the
command goes on with what is missing, a killed run included.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from report import finish, make_parser, table

from baselines.engine.engine import make_engine
from baselines.learning.collect import Environments, count_image_tokens
from baselines.learning.warm_start import WarmConfig, warm_start
from baselines.models.folders import NEW_TOKENS, TrainedLimits
from baselines.models.load import load_family
from baselines.models.lora import export_merged
from baselines.runs.folder import checkpoints
from baselines.runs.logs import read_rows
from baselines.studies.arms import LARGE
from baselines.studies.processes import RESULTS_FOLDER
from vlgym.env.prompts import PromptBuilder
from vlgym.play.curriculum import CURRICULA

POINTS, EPISODES, PER_UPDATE = 4, 32, 256
"""Validations of a run after its first (on the highest level), episodes of each, environment steps
of an update."""


@dataclass(frozen=True)
class Bench:
    """An environment with levels and the budget of each run on it."""

    env: str
    steps: int  # environment steps of a run
    warm: WarmConfig
    options: tuple[str, ...]  # of the learner
    limit: str = ""  # behind the sampler's name, `@K` for levels up to K
    kwargs: dict[str, Any] = field(default_factory=dict)  # of the environment
    history: int | None = None  # past turns in the prompt; None for as many as the environment's


BENCHES = {
    "NumberLine": Bench(
        "vlgym/NumberLine-v1", 16_384, WarmConfig(samples=4_096, reading=0.99),
        (*LARGE, "--kl-coef", "0.02", "--gamma", "0.5"),
    ),
    "OneRoom": Bench(
        "vlgym/OneRoomS6Fast-v1", 4_096, WarmConfig(samples=4_096, val_episodes=32),
        (*LARGE, "--kl-coef", "0.02", "--gamma", "0.95"), "@2",
    ),
    "Sokoban": Bench(
        "vlgym/SokobanDrawn-v0", 4_096, WarmConfig(steps=1_200, samples=16_384, noise=0.3),
        # Rollouts of half an episode of 30 turns.
        ("--num-envs", "16", "--rollout-steps", "16", "--minibatch", "128", "--kl-coef", "0.01", "--gamma", "0.95"),
        "@1", {"image_size": [196, 196]}, 0,
    ),
}  # fmt: skip


def make_start(bench: Bench, seed: int, out: Path) -> None:
    """Imitate the noisy oracle on all levels alike."""
    family = load_family("tiny", image_tokens=count_image_tokens("tiny", [bench.env]), seed=seed)
    layout = PromptBuilder.asked(bench.history, None)
    levels = {"curriculum": f"uniform{bench.limit}", "seed": seed}
    envs = Environments([bench.env], bench.kwargs, 1, builder=layout, **levels)
    engine = make_engine(family, max_new_tokens=NEW_TOKENS, parsers=envs.parsers())
    warm_start(engine, envs, bench.warm, seed=seed)
    limits = TrainedLimits(engine.max_new_tokens, family.image_tokens, system=family.system)
    export_merged(family, out, limits.note())


def play(bench: Bench, name: str, seed: int, start: Path, out: Path) -> dict[str, Any]:
    """Train once, or go on; return the line of the record."""
    command = [sys.executable, "-m", "baselines.vldac"]
    resumed = bool(out.is_dir() and checkpoints(out / "checkpoints"))
    if resumed:
        command += ["--resume", "--out", str(out)]
    else:
        updates = bench.steps // PER_UPDATE
        command += [
            "--env", bench.env, "--env-steps", str(bench.steps), "--warm.steps", "0",
            "--eval-episodes", str(EPISODES), "--eval-every", str(updates // POINTS),
            "--no-eval-before", "--no-eval-controls", "--record-every", "0", "--threads", "1",
            "--model", str(start), "--seed", str(seed), "--curriculum", f"{name}{bench.limit}",
            "--out", str(out), "--lr", "3e-4", *bench.options,
            *(f"--env-kwargs={key}={value}" for key, value in bench.kwargs.items()),
            *(() if bench.history is None else ("--history-turns", str(bench.history))),
        ]  # fmt: skip
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    reports = json.loads((out / "evaluation.json").read_text())
    points = [(each["env_steps"], each["success"]) for each in reports if each["split"] == "val"]
    (last,) = [each for each in reports if each["split"] == "test"]
    area = sum((b - a) * (x + y) / 2 for (a, x), (b, y) in pairwise(points)) / bench.steps
    levels = [row["curriculum/level_mean"] for row in read_rows(out / "log.jsonl")]
    cpu = sum(getattr(os.times(), x) - getattr(before, x) for x in ("children_user", "children_system"))
    return {
        "sampler": name, "seed": seed, "success": last["success"], "area": area, "points": points,
        "level_mean": [round(level, 2) for level in levels[:: max(1, len(levels) // 20)]],
        "resumed": resumed, "cpu_minutes": round(cpu / 60, 2),
    }  # fmt: skip


def show(values: list[float]) -> str:
    """Mean and its standard error."""
    error = f" ± {stdev(values) / len(values) ** 0.5:.3f}" if len(values) > 1 else ""
    return f"{mean(values):.3f}{error}"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("name", choices=BENCHES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--folder", type=Path, default=Path("runs/curricula"), help="of the runs")
    parser.add_argument("--table", action="store_true", help="play nothing")
    args = parser.parse_args()
    bench, folder = BENCHES[args.name], args.folder / args.name
    record = RESULTS_FOLDER / f"curricula-{args.name}.jsonl"
    lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    for seed in [] if args.table else args.seeds:
        start = folder / f"start-{seed}"
        if not start.exists():
            make_start(bench, seed, start)
        for name in CURRICULA:
            if not any((line["sampler"], line["seed"]) == (name, seed) for line in lines):
                lines.append(play(bench, name, seed, start, folder / f"{name}-{seed}"))
                with record.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    rows = []
    for name in CURRICULA:
        if own := [line for line in lines if line["sampler"] == name]:
            minutes = [line["cpu_minutes"] for line in own if not line["resumed"]]
            rows.append(
                [f"`{name}`", len(own), *(show([line[key] for line in own]) for key in ("success", "area")),
                 show(minutes) if minutes else ""]
            )  # fmt: skip
    header = ("sampler", "seeds", "success on top", "area under success", "CPU minutes")
    title = f"Curricula on {bench.env}, {bench.steps:,} steps"
    finish("curricula", title, table(header, rows), ("torch", "transformers"))


if __name__ == "__main__":
    main()

"""Studies: several learners, several seeds, one command, one table and one plot.

    python -m baselines.studies.study algorithms --workers 2
    python -m baselines.studies.study algorithms --seeds 2 --env-steps 2048
    python -m baselines.studies.study curve-OneRoom-v1 --write

Runs are ordinary runs of learners, from a warm start that all arms of a seed share, with the same
number of environment steps. The command can be stopped (Ctrl-C) and given again: it goes on with
what is missing. The studies are data: `baselines/studies/arms.py`.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import tyro

from vlgym.errors import check_choice, check_options
from vlgym.play.controls import GREY, SHUFFLED

from ..learning.command import main, parse
from ..runs.folder import read_checkpoint_record
from ..runs.logs import LOG_FILE, read_rows
from .arms import STUDIES, Study
from .processes import PHASE_FILE, Phase, Runs, open_study
from .report import draw_study, write_study_page
from .sets import SETS, run_sets
from .sets import STUDY as SETS_STUDY

MOST_WORKERS = 256
CURVE_COLUMNS = (
    "env_steps", "episode/success", "episode/return", "rollout/invalid_rate", "episode/count",
)  # fmt: skip


@dataclass(frozen=True)
class Config:
    """Run a study, or go on with it, and write its table, plot and raw runs."""

    name: Annotated[str, tyro.conf.Positional]
    """algorithms; credit-1, -2, -4, -8; sight-NAME for NumberLine, EZPoints, OneRoomS6Fast (-v0,
    -v1); words-NumberLine-v1; curve-NAME for OneRoom-v1, Hallway-v1, MazeS2-v1, SokobanDrawn-v0,
    ScreensClick-marks, ScreensClick-grid, TicTacToe-v0, KuhnPoker-v0, CoinGame-v0; or sets, which
    asks how many interaction types it takes."""
    out: Path = Path("runs/studies")
    """Parent of the study's folder."""
    workers: int = 2
    """Runs side by side, each with one thread."""
    seeds: int | None = None
    """Seeds per arm; default the study's."""
    env_steps: int | None = None
    """Environment steps per run; default the study's."""
    model: str | None = None
    """Of sets: the model to begin with, a folder or a Hub name; default tiny after a warm start."""
    options: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Further options for every run, as --options=--eval-episodes=20; giving it again adds."""
    write: bool = False
    """Copy plot and raw runs to docs/studies/ when all runs have ended."""


def collect_runs(folder: Path, study: Study) -> list[dict[str, Any]]:
    """The raw runs: per arm and seed the training curve and the held-out evaluations."""
    results = []
    for arm, seed in product(study.arms, range(study.seeds)):
        out = folder / "runs" / f"{arm.slug}-{seed}"
        if not (out / PHASE_FILE).is_file():
            continue
        rows, file = read_rows(out / LOG_FILE), out / "evaluation.json"
        evaluations = read_checkpoint_record(file) if file.is_file() else []

        # The first arm of a seed judges the warm start, for all arms that share it.
        if evaluations and evaluations[0]["update"] and study.warm_options is not None:
            if not (start := find_start(folder, seed)):
                continue
            evaluations = [*start, *evaluations]

        # A policy names a folder of this machine.
        for entry in evaluations:
            for report in (entry, entry.get(GREY, {}), entry.get(SHUFFLED, {})):
                report.pop("policy", None)
        results.append({
            "arm": arm.label, "seed": seed, "curve_columns": list(CURVE_COLUMNS),
            "curve": [[row.get(name) for name in CURVE_COLUMNS] for row in rows],
            "gradient_steps": int(sum(row["policy/gradient_steps"] for row in rows)),
            "explained_variance": average_half(rows, "value/explained_variance"),
            "evaluations": evaluations,
        })  # fmt: skip
    return results


def average_half(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """Mean of a metric over the second half of a run's updates; None where no row has it."""
    values = [row[name] for row in rows[len(rows) // 2 :] if row.get(name) is not None]
    return sum(values) / len(values) if values else None


def find_start(folder: Path, seed: int) -> list[dict[str, Any]]:
    """Return the warm start's held-out result, which the seed's first arm measures for all."""
    for path in sorted((folder / "runs").glob(f"*-{seed}/evaluation.json")):
        if rows := [row for row in read_checkpoint_record(path) if row["update"] == 0]:
            return rows
    return []


def run_study(config: Config) -> Path:
    """Run what is missing of a study; return its folder. Failed runs are a `FailedError`."""
    check_choice("study", config.name, (*STUDIES, SETS))
    check_options(config, "workers", least=1, most=MOST_WORKERS)
    check_options(config, "seeds", "env_steps", least=1)
    if config.name == SETS:
        return run_sets(
            config.out / SETS, workers=config.workers, seeds=config.seeds or SETS_STUDY.seeds,
            steps=config.env_steps or SETS_STUDY.env_steps, model=config.model,
            options=config.options, write=config.write,
        )  # fmt: skip
    study = STUDIES[config.name]
    steps = config.env_steps or study.env_steps
    study = replace(study, seeds=config.seeds or study.seeds, env_steps=steps)

    # A wrong option is found before the warm starts.
    for module in sorted({arm.module for arm in study.arms}) if config.options else ():
        parse(importlib.import_module(module).Config, None, config.options).resolve()

    # The plan: seed by seed, the warm start first.
    folder, seeds, options = config.out / config.name, range(study.seeds), config.options
    runs = Runs(folder)
    starts = [] if study.warm_options is None else [partial(runs.warm, study, seed) for seed in seeds]
    trained = [partial(runs.train, study, arm, seed, options) for seed in seeds for arm in study.arms]
    phases: list[Phase] = [("warm starts", starts), ("runs", trained)]
    with open_study(folder, {"study": config.name, "env_steps": steps, "options": list(options)}):
        stopped = runs.carry_out(config.workers, phases)

    results = collect_runs(folder, study)
    complete = len(results) == len(trained)
    text = write_study_page(config.name, study, results, complete=complete)
    plot = partial(draw_study, study=study, results=results)
    return runs.publish(config.name, results, plot, text, stopped, write=config.write and complete)


if __name__ == "__main__":
    main(Config, run_study, __doc__)

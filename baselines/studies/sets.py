"""The study of interaction types: one model trained on k of them, judged on other types.

All models of a seed begin alike: `tiny` after a warm start on all types of the study, or `--model`.
Each set of types trains it with the same number of environment steps, and then each held-out type
does: its held-out episodes before that are success without training, and the training episodes say
after how many steps it reaches `THRESHOLD`. k = 0 is trained on the held-out types from the
beginning.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations, product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from vlgym.play.controls import GREY
from vlgym.registry import get_registry

from ..runs.folder import read_checkpoint_record
from ..runs.logs import LOG_FILE, read_rows, write_figure
from .arms import TINY, Study
from .processes import MODEL_FILE, PHASE_FILE, Phase, Runs, open_study
from .report import estimate_mean

SETS = "sets"
TRAINED = (
    "vlgym/NumberLine-v1", "vlgym/EZPoints-v1", "vlgym/Blackjack-v0", "vlgym/SeeDigit-v0",
    "vlgym/SeeColour-v0", "vlgym/SeeCell-v0", "vlgym/SeeSide-v0", "vlgym/SeeHistory-v0",
)  # fmt: skip
HELD_OUT = ("vlgym/SeeCount-v0", "vlgym/OneRoomS6Fast-v1")  # with those, ten interaction types
SIZES, MOST_SETS = (1, 2, 4, 8), 4  # types in a set; most sets of a size
THRESHOLD, SET_WINDOW = 0.5, 32  # success that counts as learnt, over that many episodes or more

STUDY = Study(
    title="Held-out success by the number of interaction types trained",
    question="How many interaction types does a model have to train on to do better on others?",
    env=",".join((*TRAINED, *HELD_OUT)), arms=(), env_steps=1_024, seeds=3,
    options=(*TINY, "--eval-episodes", "24", "--num-envs", "32", "--rollout-steps", "4", "--minibatch", "32"),
    warm_options=(
        "--warm.samples", "4096", "--warm.steps", "240", "--warm.check-every", "120",
        "--warm.val-episodes", "80",
    ),
)  # fmt: skip


def draw_sets(size: int) -> list[tuple[str, ...]]:
    """Return at most `MOST_SETS` different sets of this many types, the same in every run."""
    every = list(combinations(TRAINED, size))
    chosen = np.random.default_rng(size).choice(len(every), min(MOST_SETS, len(every)), replace=False)
    return [every[at] for at in sorted(chosen.tolist())]


def list_runs(seeds: int) -> list[tuple[str, tuple[str, ...], int]]:
    """Return (name, set, seed) of each model; the first of a seed has no set."""
    sets = [(f"{size}-{number}", each) for size in SIZES for number, each in enumerate(draw_sets(size))]
    return [(f"{name}-{seed}", each, seed) for seed in range(seeds) for name, each in [("0-0", ()), *sets]]


def run_sets(
    folder: Path, *, workers: int, seeds: int, steps: int, model: str | None, options: Sequence[str], write: bool
) -> Path:
    """Run what is missing of the study; return its folder."""
    runs, every = Runs(folder), list_runs(seeds)

    def begin(seed: int) -> str:
        return model or str(folder / "warm" / f"seed-{seed}")

    # A run begins when the model that it begins with has ended.
    def train(name: str, env: str, begun: str, seed: int, *more: str) -> None:
        if model is not None or Path(begun, "config.json").is_file():
            fresh = ["--env", env, "--model", begun, "--seed", str(seed), "--warm.steps", "0"]
            fresh += [*STUDY.options, *options, *more]
            runs.learn("baselines.vldac", name, steps, fresh, {"seed": seed})

    def train_set(name: str, each: Sequence[str], seed: int) -> None:
        train(name, ",".join(each), begin(seed), seed, "--eval-episodes", "0")

    def go_on(name: str, each: Sequence[str], seed: int, env: str) -> None:
        own = folder / "runs" / name
        begun = str((own / MODEL_FILE).parent) if each else begin(seed)
        if not each or (own / PHASE_FILE).is_file():
            train(f"{name}-{title(env)}", env, begun, seed)

    transfers = [(*each, env) for env in HELD_OUT for each in every]
    phases: list[Phase] = [
        ("warm starts", [] if model else [partial(runs.warm, STUDY, seed) for seed in range(seeds)]),
        ("sets", [partial(train_set, *each) for each in every if each[1]]),
        ("held-out types", [partial(go_on, *each) for each in transfers]),
    ]
    plan = {"study": SETS, "env_steps": steps, "model": model, "options": list(options)}
    with open_study(folder, plan):
        print(f"{len(every) - seeds} models of {steps:,} steps, {len(transfers)} of as many on held-out types")
        stopped = runs.carry_out(workers, phases)

    results = collect_set_runs(folder, seeds)
    complete = len(results) == len(transfers)
    page, draw = write_sets_page(results, steps, seeds, complete), partial(draw_gains, results=results)
    return runs.publish(SETS, results, draw, page, stopped, write=write and complete)


def title(env_id: str) -> str:
    """Return the name of an environment as a part of a folder's name."""
    return get_registry().get(env_id).title


def collect_set_runs(folder: Path, seeds: int) -> list[dict[str, Any]]:
    """Return the runs on held-out types that have ended."""
    results = []
    for (name, each, seed), env in product(list_runs(seeds), HELD_OUT):
        out = folder / "runs" / f"{name}-{title(env)}"
        if not (out / PHASE_FILE).is_file():
            continue

        # The first held-out episodes are played without training on the type.
        reports = read_checkpoint_record(out / "evaluation.json")
        first, *_, last = (report for report in reports if report["split"] == "test")
        rows = [row for row in read_rows(out / LOG_FILE) if row.get("episode/count")]
        curve = [(row["env_steps"], row["episode/success"], row["episode/count"]) for row in rows]
        results.append({
            "set": list(each), "name": name.rpartition("-")[0], "seed": seed, "held_out": env,
            "before": first["success"], "grey": first[GREY]["success"], "after": last["success"],
            "curve": curve, "reached": reach(curve),
        })  # fmt: skip
    return results


def reach(curve: Sequence[tuple[float, float, float]]) -> float | None:
    """Return the environment steps after which `THRESHOLD` of the last `SET_WINDOW` training
    episodes or more are won; `curve` has (environment steps, success, episodes) of each update."""
    for end in range(1, len(curve) + 1):
        won = played = 0.0
        for _, success, count in reversed(curve[:end]):
            won, played = won + success * count, played + count
            if played >= SET_WINDOW:
                break
        if played >= SET_WINDOW and won >= THRESHOLD * played:
            return curve[end - 1][0]
    return None


def gains(results: Sequence[dict[str, Any]], env: str) -> dict[int, dict[int, list[float]]]:
    """Return each model's success on a held-out type without training, less that of its seed's
    beginning: {size of the set: {seed: gains}}."""
    before = {(run["name"], run["seed"]): run["before"] for run in results if run["held_out"] == env}
    result: dict[int, dict[int, list[float]]] = {}
    for (name, seed), success in before.items():
        size = int(name.partition("-")[0])
        if size and ("0-0", seed) in before:
            result.setdefault(size, {}).setdefault(seed, []).append(success - before["0-0", seed])
    return dict(sorted(result.items()))


def cluster(seeds: Mapping[int, Sequence[float]]) -> list[float]:
    """Return the mean of each seed, whose models begin alike: they are one observation."""
    return [mean(values) for values in seeds.values()]


def draw_gains(path: Path, results: Sequence[dict[str, Any]]) -> None:
    """Write the plot: the gain on held-out types by the number of types trained."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    axis.axhline(0, color="0.6", linewidth=0.8)
    styles = (("tab:blue", 0.96), ("tab:orange", 1.04))
    for env, (colour, factor) in zip(HELD_OUT, styles, strict=False):
        for number, (size, values) in enumerate(gains(results, env).items()):
            middle, _, half = estimate_mean(cluster(values))
            models = [each for own in values.values() for each in own]
            place, error = size * factor, None if np.isnan(half) else [half]
            axis.plot([place] * len(models), models, ".", color=colour, alpha=0.4)
            label = None if number else title(env)
            axis.errorbar([place], [middle], yerr=error, fmt="o", color=colour, capsize=4, label=label)
    axis.set_xscale("log", base=2)
    axis.set_xticks(SIZES, [str(size) for size in SIZES])
    figure.legend(fontsize=8, loc="outside lower center", ncols=2, frameon=False)
    axis.set(xlabel="interaction types trained (k)", title=STUDY.title)
    axis.set_ylabel("held-out success, less the beginning's")
    axis.title.set_fontsize(9)
    write_figure(figure, path)


def write_sets_page(results: Sequence[dict[str, Any]], steps: int, seeds: int, complete: bool) -> str:
    """Return the text of the study's page."""
    lines = [
        f"# {STUDY.title}", "", STUDY.question, "",
        f"`python -m baselines.studies.study {SETS}`: at most {MOST_SETS} sets of each size, {seeds} "
        f"seeds, {steps:,} environment steps on a set and on each held-out type "
        f"({', '.join(HELD_OUT)}). Intervals are 95 %, Student's t over the means of seeds, since all "
        "models of a seed begin alike.", "",
        *([] if complete else ["**Incomplete: some runs have not ended.**", ""]),
        "| held-out type | k | models | success without training | with grey pictures | less k = 0 | "
        f"reach {THRESHOLD:g} | steps to it | success after training |",
        "|---" * 9 + "|",
    ]  # fmt: skip

    # A row per held-out type and size of the set; 0 is no training.
    for env, size in product(HELD_OUT, (0, *SIZES)):
        own = [run for run in results if run["held_out"] == env and run["name"].startswith(f"{size}-")]
        if not own:
            continue
        reached = [run["reached"] for run in own if run["reached"] is not None]
        middle, _, half = estimate_mean(cluster(gains(results, env).get(size, {})))
        before, grey, after = (mean(run[x] for run in own) for x in ("before", "grey", "after"))
        lines.append(
            f"| {title(env)} | {size} | {len(own)} | {before:.3f} | {grey:.3f} | "
            f"{f'{middle:+.3f} +-{half:.3f}' if size else '-'} | {len(reached)} of {len(own)} | "
            f"{f'{mean(reached):,.0f}' if reached else '-'} | {after:.3f} |"
        )
    return "\n".join([*lines, "", f"![{STUDY.title}]({SETS}.png)", ""])

"""What the tiny model learns by self-play: three games, three seeds each.

    python tests/benchmarks/self_play.py --runs runs/self_play --write

Each run is one of `baselines.vldac --self-play` with one thread, in a process of its own, then judged: the model as it
was before reinforcement learning, the members of its pool, and the model at the end. A run that stands in `--runs`
already is gone on with, or not made again, so the script may be stopped at any time. Hours for all of them; `--only`
names games. The page has what was finished.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from report import PAGES, finish, parse_write, table
from safetensors.torch import load_file

from vlgym.evaluation import evaluate
from vlgym.intervals import wilson_interval
from vlgym.types import Policy

RESULT = "judged.json"
SAMPLES = 100
"""Replies in each of Kuhn poker's 12 information states, at least."""
GAMES = 200
"""Games against each opponent."""


class Study(NamedTuple):
    """A game, how it is trained, and how a model is judged."""

    title: str
    env: str
    options: str
    judge: Callable[[Policy], dict[str, float]]
    words: str


def judge_kuhn(policy: Policy) -> dict[str, float]:
    """What a best reply wins against it, in chips a hand."""
    from vlgym_pettingzoo.exploit import measure, sample_shares

    return {"exploitability": measure(sample_shares(policy, SAMPLES))}


def judge_tic_tac_toe(policy: Policy) -> dict[str, float]:
    """Games won, drawn and lost against random play and against the exact player, and illegal replies."""
    found: dict[str, float] = {}
    for opponent in ("random", "oracle"):
        ends: list[float] = []
        bad: list[bool] = []
        evaluate(
            "vlgym/TicTacToe-v0", policy, episodes=GAMES, env_kwargs={"opponents": opponent}, num_envs=32,
            on_episode=lambda episode, ends=ends, bad=bad: (  # type: ignore[misc]
                ends.append(sum(turn.reward for turn in episode)), bad.extend(turn.invalid for turn in episode),
            ),
        )  # fmt: skip
        found |= {
            f"{opponent}: won": sum(end > 0 for end in ends), f"{opponent}: drawn": sum(end == 0 for end in ends),
            f"{opponent}: lost": sum(end < 0 for end in ends), f"{opponent}: illegal": sum(bad) / len(bad),
        }  # fmt: skip
    return found


def judge_coins(policy: Policy) -> dict[str, float]:
    """Mean return of both seats, each held by the model."""
    returns: list[float] = []
    evaluate(
        "vlgym/CoinGame-v0", policy, episodes=GAMES // 4, env_kwargs={"opponents": policy}, num_envs=25,
        on_episode=lambda episode: returns.append(sum(turn.reward for turn in episode)),
    )  # fmt: skip
    return {"return": sum(returns) / len(returns)}


COMMON = "--self-play --threads 1 --minibatch 128 --micro-batch 128 --lr 1e-4 --kl-coef 0.02 --eval-episodes 0 "
COMMON += "--no-eval-before --pool.rating-games 0 --warm.noise 1 --warm.target 1 --num-envs 32"
STUDIES = {
    "kuhn": Study(
        "Kuhn poker", "vlgym/KuhnPoker-v0",
        "--env-kwargs hands=1 --gamma 1.0 --warm.steps 240 --updates 60 --rollout-steps 16 --pool.past 0.5 "
        "--pool.fixed 0 --pool.every 4 --pool.size 16",
        judge_kuhn, "Exploitability: what a best reply wins, in chips a hand.",
    ),
    "tictactoe": Study(
        "Tic-Tac-Toe", "vlgym/TicTacToe-v0",
        "--image-tokens 36 --gamma 0.95 --warm.steps 1000 --warm.samples 4096 --warm.final-lr 0.1 "
        "--warm.check-every 200 --updates 120 --rollout-steps 12 --pool.past 0.2 --pool.fixed 0.4 --pool.every 20",
        judge_tic_tac_toe, "Games won, drawn and lost.",
    ),
    "coins": Study(
        "Coin game, both paid the mean", "vlgym/CoinGame-v0",
        "--gamma 0.95 --warm.steps 300 --updates 60 --rollout-steps 48 --pool.past 0 --pool.fixed 0 "
        "--pool.share-reward --pool.every 10",
        judge_coins, "Mean return of a seat over 50 games of the model with itself.",
    ),
}  # fmt: skip


def train(study: Study, seed: int, out: Path) -> None:
    """Make a run, or go on with it."""
    if (out / "model").is_dir():
        return
    words = ["--resume"] if (out / "checkpoints").is_dir() else ["--env", study.env, *COMMON.split(), "--seed"]
    if words != ["--resume"]:
        words += [str(seed), *study.options.split()]
    subprocess.run([sys.executable, "-m", "baselines.vldac", *words, "--out", str(out)], check=True)


def models(out: Path) -> Iterator[tuple[int, Policy]]:
    """The members of the pool by their updates, the first of 0, then the trained model."""
    from baselines.plugin import make_hf

    policy: Any = make_hf(str(out / "model"), seed=0, threads=1)
    parameters = dict(policy.engine.family.model.named_parameters())
    end = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    last = json.loads((out / "log.jsonl").read_text().splitlines()[-1])["update"]
    members = sorted((out / "pool").glob("update-*.safetensors"))
    for path in (*members, None):
        tensors = end if path is None else load_file(path)
        with torch.no_grad():
            for name, tensor in tensors.items():
                parameters[name].copy_(tensor)
        yield (last if path is None else int(path.stem.removeprefix("update-"))), policy


def judge(study: Study, out: Path) -> dict[str, dict[str, float]]:
    """Judge a finished run once; update -> figures."""
    path = out / RESULT
    if not path.exists():
        path.write_text(json.dumps({update: study.judge(policy) for update, policy in models(out)}))
    held: dict[str, dict[str, float]] = json.loads(path.read_text())
    return held


def describe(name: str, judged: dict[int, dict[str, dict[str, float]]]) -> str:
    """The table of a game: each seed before and after, and the budget."""
    rows = []
    for seed, held in judged.items():
        first, last = held[min(held, key=int)], held[max(held, key=int)]
        rows.append([seed, *(cell for key in first for cell in (show(first, key), show(last, key)))])
    keys = list(next(iter(next(iter(judged.values())).values())))
    return table(["seed", *(cell for key in keys for cell in (f"{key}, before", "after"))], rows)


def show(figures: dict[str, float], key: str) -> str:
    """A count of games with its interval, or a number."""
    if key.partition(": ")[2] in ("won", "drawn", "lost"):
        low, high = wilson_interval(int(figures[key]), GAMES)
        return f"{int(figures[key])} of {GAMES} [{low:.2f}, {high:.2f}]"
    return f"{figures[key]:.3f}"


def draw(judged: dict[str, dict[int, dict[str, dict[str, float]]]], path: Path) -> None:
    """A curve of each seed over the updates, a panel for each figure."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [(name, key) for name, seeds in judged.items() for key in next(iter(next(iter(seeds.values())).values()))]
    panels = [(name, key) for name, key in panels if not key.endswith(("lost", "illegal"))]
    figure, axes = plt.subplots(1, len(panels), figsize=(4 * len(panels), 3.2), squeeze=False)
    for axis, (name, key) in zip(axes[0], panels, strict=True):
        for seed, held in judged[name].items():
            updates = sorted(held, key=int)
            axis.plot(
                [int(update) for update in updates], [held[update][key] for update in updates], label=f"seed {seed}"
            )
        axis.set_title(f"{STUDIES[name].title}: {key}", fontsize=9)
        axis.set_xlabel("updates")
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Train what is missing, judge it, and write the page."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/self_play"), help="folder of the runs")
    parser.add_argument("--only", nargs="+", choices=list(STUDIES), default=list(STUDIES), help="games to train")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--no-train", action="store_true", help="judge the finished runs alone")
    args = parse_write(__doc__ or "", parser)
    torch.set_num_threads(1)
    judged: dict[str, dict[int, dict[str, dict[str, float]]]] = {}
    for name, study in STUDIES.items():
        for seed in args.seeds:
            out = args.runs / f"{name}-{seed}"
            if name in args.only and not args.no_train:
                train(study, seed, out)
            if (out / "model").is_dir():
                judged.setdefault(name, {})[seed] = judge(study, out)
    parts = []
    for name, seeds in judged.items():
        study = STUDIES[name]
        steps = [
            json.loads((args.runs / f"{name}-{seed}" / "log.jsonl").read_text().splitlines()[-1]) for seed in seeds
        ]
        turns = ", ".join(f"{each['env_steps']:,}" for each in steps)
        parts.append(
            f"## {study.title}\n\n`python -m baselines.vldac --env {study.env} {COMMON} {study.options} --seed N`\n\n"
            f"{study.words} Turns of training: {turns}.\n\n{describe(name, seeds)}"
        )
    missing = [STUDIES[name].title for name in STUDIES if name not in judged]
    if missing:
        parts.append(f"Not run: {', '.join(missing)}.")
    if args.write:
        draw(judged, PAGES / "self_play.png")
        parts.append("![curves](self_play.png)")
    lead = (
        "The tiny model, from scratch: imitation of random legal moves (no move of a good player is shown to it), then "
        "VL-DAC by self-play. Everything is sampled at temperature 1. An unreadable or illegal reply counts as a "
        "random legal move.\n\n"
    )
    finish("self_play", "Self-play of the tiny model", lead + "\n\n".join(parts), ["vlgym", "torch"], args.write)


if __name__ == "__main__":
    main()

"""When a reply is over, and what an unreadable one costs: ways to train the demo, five seeds each.

    python tests/benchmarks/reply_end.py --runs runs/reply_end --write

Each way and seed is one run of `baselines.vldac` on NumberLine with one thread, in a process of its own, followed by
four evaluations: sampled and greedy, at the token limit of the training and at four times that. A run that stands in
`--runs` already is not made again, so the script may be stopped at any time. About four minutes each on one core.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from report import PAGES, finish, parse_write, table

ENV = "vlgym/NumberLine-v0"
RESULT = "result.json"
SAMPLED, GREEDY = "sampled", "greedy"


class Way(NamedTuple):
    """One way to train: who ends a reply, and what is taken off the reward of an unreadable one."""

    rule: str
    penalty: float
    words: str


WAYS = {
    "turn": Way("turn", 0.0, "end of turn, unreadable replies are free (until now)"),
    "cut": Way("cut", 0.0, "end of turn, a cut reply is unreadable"),
    "parser": Way("parser", 0.0, "parser"),
    "turn-penalty": Way("turn", 0.5, "end of turn, penalty 0.5"),
    "cut-penalty": Way("cut", 0.5, "end of turn, a cut reply is unreadable, penalty 0.5"),
    "parser-penalty": Way("parser", 0.5, "parser, penalty 0.5 (the defaults)"),
}


def set_rule(rule: str) -> None:
    """Make this process end replies by a rule: `parser` as the package does it, `turn` at the end-of-turn token alone,
    `cut` as `turn`, but nothing is read from a reply that ran into the limit."""
    from baselines.engine.sampler import Replies, Sampler
    from baselines.learning.environments import Environments

    if rule == "parser":
        return
    Environments.parsers = lambda self: ()  # type: ignore[method-assign]
    sample: Callable[..., Replies] = Sampler.sample

    def sample_and_drop(self: Sampler, *args: Any, **kwargs: Any) -> Replies:
        out = sample(self, *args, **kwargs)
        out.texts = ["" if cut else text for text, cut in zip(out.texts, out.cut.tolist(), strict=True)]
        return out

    if rule == "cut":
        Sampler.sample = sample_and_drop  # type: ignore[method-assign]


def train(way: Way, seed: int, out: Path) -> None:
    """Train once, evaluate four times, and write the result into the run's folder."""
    from baselines import vldac
    from baselines.learning.rewards import RewardOptions

    set_rule(way.rule)
    if not (out / "model").exists():
        config = vldac.Config(
            env=ENV, seed=seed, threads=1, out=out, reward=RewardOptions(unreadable_penalty=way.penalty)
        )
        vldac.train(config)
    (out / RESULT).write_text(json.dumps(judge(way.rule, out)))


def judge(rule: str, out: Path) -> dict[str, Any]:
    """Four evaluations of the model, and the shares of unreadable and of cut replies in its last ten updates."""
    import torch

    from baselines.engine.engine import Engine
    from baselines.engine.policy import ModelPolicy
    from baselines.learning.environments import parsers_of
    from baselines.models.limits import read_limits
    from baselines.models.load import load_family
    from vlgym.evaluation import evaluate

    limits = read_limits(str(out / "model"))
    assert limits.max_new_tokens is not None
    family = load_family(str(out / "model"), image_tokens=limits.image_tokens)
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()][-10:]
    result: dict[str, Any] = {
        "limit": limits.max_new_tokens,
        **{name: sum(row[f"rollout/{name}"] for row in rows) / len(rows) for name in ("invalid_rate", "cut_rate")},
    }
    for times in (1, 4):
        for name in (SAMPLED, GREEDY):
            parsers = parsers_of([ENV], {}) if rule == "parser" else ()
            engine = Engine(family, max_new_tokens=times * limits.max_new_tokens, parsers=parsers)
            policy = ModelPolicy(engine, torch.Generator().manual_seed(0), greedy=name == GREEDY)
            report = evaluate(ENV, policy, episodes=200, num_envs=32)
            result[f"{name} x{times}"] = {"success": report.success, "invalid_rate": report.invalid_rate}
    return result


def show(results: list[dict[str, Any]], name: str, metric: str) -> str:
    """The worst of the seeds, and all of them."""
    values = [result[name][metric] for result in results]
    worst = min(values) if metric == "success" else max(values)
    return f"{worst:.3f} ({', '.join(f'{value:.3f}' for value in values)})"


def main() -> None:
    """Make the runs that are missing, two at a time, and write the page."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/reply_end"), help="folder of the runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument(
        "--ways", nargs="+", choices=sorted(WAYS), default=["turn", "turn-penalty", "cut-penalty", "parser-penalty"]
    )
    parser.add_argument("--one", nargs=2, metavar=("WAY", "SEED"), help="make this run in this process, and no page")
    args = parse_write(__doc__ or "", parser)
    if args.one:
        way, seed = args.one
        train(WAYS[way], int(seed), args.runs / f"{way}-{seed}")
        return
    args.runs.mkdir(parents=True, exist_ok=True)
    wanted = [(way, seed) for seed in args.seeds for way in args.ways]
    missing = [pair for pair in wanted if not (args.runs / f"{pair[0]}-{pair[1]}" / RESULT).is_file()]
    running: list[subprocess.Popen[bytes]] = []
    for way, seed in missing:
        command = [sys.executable, __file__, "--runs", str(args.runs), "--one", way, str(seed)]
        with (args.runs / f"{way}-{seed}.log").open("w") as log:
            running.append(subprocess.Popen(command, stdout=log, stderr=log))
        print(" ".join(command), flush=True)
        if len(running) == 2:
            wait(running)
    while running:
        wait(running)
    report(args.runs, args.ways, args.seeds, write=args.write)


def wait(running: list[subprocess.Popen[bytes]]) -> None:
    """Wait until one of the processes has ended, and take it off the list."""
    import time

    while all(process.poll() is None for process in running):
        time.sleep(1)
    ended = next(process for process in running if process.poll() is not None)
    running.remove(ended)
    if ended.returncode:
        raise SystemExit(f"failed, see the log in --runs: {ended.args!r}")


def report(runs: Path, ways: list[str], seeds: list[int], *, write: bool) -> None:
    """Write page and JSON."""
    results = {way: [json.loads((runs / f"{way}-{seed}" / RESULT).read_text()) for seed in seeds] for way in ways}
    if write:
        (PAGES / "reply_end.json").write_text(json.dumps({"seeds": seeds, "ways": results}, indent=1) + "\n")
    sections = []
    for metric, title in (("success", "Success"), ("invalid_rate", "Unreadable replies")):
        names = [f"{name} x{times}" for times in (1, 4) for name in (SAMPLED, GREEDY)]
        lines = [[WAYS[way].words, *(show(results[way], name, metric) for name in names)] for way in ways]
        sections.append(f"## {title}: the worst seed, and all\n\n" + table(["who ends a reply", *names], lines))
    training = []
    for way in ways:
        means = [sum(result[name] for result in results[way]) / len(seeds) for name in ("invalid_rate", "cut_rate")]
        training.append([WAYS[way].words, *(f"{mean:.3f}" for mean in means)])
    sections.append(
        "## In training: the last ten updates, mean over the seeds\n\n"
        + table(["who ends a reply", "unreadable", "cut"], training)
    )
    body = (
        f"`baselines.vldac` on {ENV}, defaults and one thread, seeds {', '.join(map(str, seeds))}; then 200 held-out "
        "episodes each, sampled at temperature 1 and greedy, at the token limit of the training (x1) and at four times "
        "that (x4). What follows from it: [decision 0006](../decisions/0006-when-a-reply-is-over.md).\n\n"
    )
    packages = ["vlgym", "torch", "transformers"]
    finish("reply_end", "When a reply is over", body + "\n\n".join(sections), packages, write)


if __name__ == "__main__":
    main()

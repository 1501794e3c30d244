"""Evaluate a model on held-out episodes of any environments.

    python -m baselines.evaluate --model runs/NumberLine-001/model --env vlgym/NumberLine-v0,vlgym/EZPoints-v0

Replies are sampled at temperature 1, as in training, or taken greedily; every success rate has its 95 % interval.
`normalized` says how far the mean return is on the way from random play (0) to the oracle (1), both from registry.yaml.
Its interval (Fieller's, 95 %) holds the errors of all three. Where arguments make another environment of it, it is left
out.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
import tyro

from vlgym.errors import UserError, check_choice, check_number, check_writable
from vlgym.evaluation import Report, evaluate
from vlgym.exits import explain_system_error
from vlgym.seeding import SPLITS
from vlgym.terminal import counting, open_console, open_progress, print_rows
from vlgym.trajectory import SEED_RULE

from .engine.engine import Engine
from .engine.policy import ModelPolicy
from .learning.command import main
from .learning.config import MOST_ENVS, MOST_SEED, RunConfig
from .learning.environments import parsers_of, prompt_builder
from .models.limits import NEW_TOKENS, Limits, read_limits
from .models.load import DTYPES, load_family
from .runs.folder import describe, environment_ids, write_json
from .runs.threads import set_up_torch

HEADERS = ("environment", "success [95 %]", "return ± se", "normalized [95 %]", "invalid", "cut", "turns")


@dataclass(frozen=True)
class Config:
    """Evaluate a model on held-out episodes."""

    model: str
    """tiny (untrained), a folder, or the Hub name of a model of a supported family."""
    env: str = "vlgym/NumberLine-v0"
    """Environment id, or several with commas between."""
    episodes: int = 200
    """Episodes per environment."""
    split: str = "test"
    """train, val or test."""
    seed: int = 0
    """Seed of the sampler."""
    greedy: bool = False
    """Take the likeliest tokens instead of sampling."""
    num_envs: int = 32
    """Environments played side by side."""
    max_new_tokens: int | None = None
    """Longest reply in tokens; default as in the model's training, 128 where that is not known."""
    image_tokens: int | None = None
    """Most tokens per image; default as in training, else 16 for tiny, 256 for published models."""
    history_turns: int | None = None
    """Past turns in the prompt; default as in training, else each environment's own."""
    history_images: int | None = None
    """Images in the prompt, the current one included; default as in training, else each environment's own."""
    parser: str | None = None
    """Reply style; default as in training, else each environment's own."""
    env_kwargs: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Further constructor arguments of the environments, as name=value (YAML values); giving it again adds."""
    out: Path | None = None
    """Write the reports to this file, as JSON, and beside it, as NAME.run.json, how they were made."""
    device: str = "cpu"
    """Torch device."""
    dtype: str = "float32"
    """float32 or bfloat16."""
    threads: int = 0
    """CPU threads of torch; 0 leaves torch's choice."""


def run(config: Config) -> list[Report]:
    """Evaluate, print a table and write the reports.

    Raises:
        UserError: an option is out of range, or names nothing.
    """
    limits = _limits(config)
    check_number("--num-envs", config.num_envs, 1, MOST_ENVS)
    check_number("--seed", config.seed, 0, MOST_SEED)
    for name in ("episodes", "max_new_tokens", "image_tokens"):
        if getattr(config, name) is not None:
            check_number(f"--{name.replace('_', '-')}", getattr(config, name), 1)
    for name in ("history_turns", "history_images"):
        if getattr(config, name) is not None:
            check_number(f"--{name.replace('_', '-')}", getattr(config, name), 0)
    check_choice("--split", config.split, SPLITS)
    check_choice("--dtype", config.dtype, DTYPES)
    if config.out is not None:
        check_writable("--out", config.out)
        if config.out.is_dir():
            raise UserError(f"--out {config.out} is a folder; name a file in it: --out {config.out / 'reports.json'}")
        config.out.parent.mkdir(parents=True, exist_ok=True)
    set_up_torch(config.threads, config.device, deterministic=True)
    env_ids = environment_ids(config.env)
    arguments = RunConfig(parser=limits.parser, env_kwargs=config.env_kwargs).environment_arguments()
    # Makes every environment: what stands in the way of one is said before a model is loaded.
    parsers = {env_id: parsers_of([env_id], arguments) for env_id in env_ids}
    family = load_family(
        config.model, image_tokens=limits.image_tokens, seed=config.seed, dtype=config.dtype, device=config.device
    )
    engine = Engine(family, max_new_tokens=limits.max_new_tokens or NEW_TOKENS)
    builder = prompt_builder(limits.history_turns, limits.history_images)
    reports: list[Report] = []
    try:
        for env_id in env_ids:
            engine.parsers = parsers[env_id]
            policy = ModelPolicy(
                engine, torch.Generator().manual_seed(config.seed), greedy=config.greedy, name=config.model
            )
            with (
                open_progress(open_console(stderr=True)) as progress,
                counting(progress, env_id.split("/")[-1], config.episodes) as advance,
            ):
                report = evaluate(
                    env_id, policy, episodes=config.episodes, split=config.split, num_envs=config.num_envs,
                    env_kwargs=arguments, builder=builder, on_episode=advance,
                )  # fmt: skip
            reports.append(report)
            if config.out is not None:
                with suppress(OSError):  # said at the end; here the next environment matters more
                    write_json(config.out, [each.to_dict() for each in reports])
    finally:  # what was played before an error or Ctrl-C is not lost
        if reports:
            print_rows(open_console(), HEADERS, [_row(each) for each in reports])
    if config.out is not None:
        numbers = {"seeds": SEED_RULE, "held_out": {"split": config.split, "first": 0, "end": config.episodes}}
        record = describe(
            f"evaluation of {config.model}", asdict(config), env_ids, arguments, builder=builder, policy=policy,
            episodes=numbers,
        )  # fmt: skip
        _write(config.out, [report.to_dict() for report in reports], record)
    return reports


def _row(report: Report) -> tuple[str, ...]:
    return (
        report.env_id, f"{report.success:.3f} [{report.success_low:.3f}, {report.success_high:.3f}]",
        f"{report.mean_return:+.3f} ± {report.return_se:.3f}", in_interval(report), f"{report.invalid_rate:.3f}",
        f"{report.cut_rate:.3f}", f"{report.mean_turns:.1f}",
    )  # fmt: skip


def _limits(config: Config) -> Limits:
    """The limits that were asked for; where none was, those of the model's training."""
    trained = read_limits(config.model)
    asked = {item.name: getattr(config, item.name) for item in fields(Limits)}
    return replace(trained, **{name: value for name, value in asked.items() if value is not None})


def _write(out: Path, reports: list[dict[str, Any]], record: dict[str, Any]) -> None:
    """Write the reports and how they were made; where that fails, somewhere else: they may have taken hours.

    Raises:
        UserError: they are not where they were asked for.
    """
    try:
        write_json(out, reports)
        write_json(out.with_suffix(".run.json"), record)
    except OSError as error:
        why = explain_system_error(error) or str(error)
        try:
            with tempfile.NamedTemporaryFile("w", prefix="reports-", suffix=".json", delete=False) as file:
                json.dump(reports, file, indent=1)
        except OSError:
            print(json.dumps(reports))
            raise UserError(f"--out {out} could not be written: {why} The reports were printed instead.") from None
        raise UserError(f"--out {out} could not be written: {why} The reports are in {file.name}.") from None


def in_interval(report: Report) -> str:
    """The normalized return (0 is random play, 1 the oracle) with its interval, as far as they are known."""
    if report.normalized is None:
        return "-"
    if report.normalized_low is None:
        return f"{report.normalized:.3f}"
    return f"{report.normalized:.3f} [{report.normalized_low:.3f}, {report.normalized_high:.3f}]"


if __name__ == "__main__":
    main(Config, run, __doc__)

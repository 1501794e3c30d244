"""Evaluate a model on held-out episodes of any environments.

    python -m baselines.evaluate --model runs/NumberLine-001/model --env vlgym/NumberLine-v0,vlgym/EZPoints-v0

Replies are sampled at temperature 1, as in training, or taken greedily; every success rate has its 95 % interval.
`normalized` says how far the mean return is on the way from random play (0) to the oracle (1), both from registry.yaml.
Its interval (Fieller's, 95 %) holds the errors of all three. Where arguments make another environment of it, it is left
out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import tyro

from vlgym.errors import UserError, check_choice
from vlgym.evaluation import Report, evaluate
from vlgym.seeding import SPLITS
from vlgym.terminal import counting, open_console, open_progress, print_rows

from .engine.engine import Engine
from .engine.policy import ModelPolicy
from .learning.command import main
from .learning.config import RunConfig
from .learning.environments import prompt_builder
from .models.load import load_family
from .runs.folder import environment_ids, write_json
from .runs.threads import set_up_torch

HEADERS = ("environment", "success [95 %]", "return ± se", "normalized [95 %]", "invalid", "turns")


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
    max_new_tokens: int = 128
    """Longest reply in tokens."""
    image_tokens: int | None = None
    """Most tokens per image; default 16 for tiny, 256 for published models."""
    history_turns: int | None = None
    """Past turns in the prompt; default each environment's own."""
    history_images: int | None = None
    """Images in the prompt, the current one included; default each environment's own."""
    parser: str | None = None
    """Reply style; default each environment's own."""
    env_kwargs: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Further constructor arguments of the environments, as name=value (YAML values); giving it again adds."""
    out: Path | None = None
    """Write the reports here as JSON."""
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
    if config.episodes < 1 or config.num_envs < 1 or config.max_new_tokens < 1:
        raise UserError("--episodes, --num-envs and --max-new-tokens must be >= 1.")
    check_choice("--split", config.split, SPLITS)
    set_up_torch(config.threads, config.device, deterministic=True)
    env_ids = environment_ids(config.env)
    arguments = RunConfig(parser=config.parser, env_kwargs=config.env_kwargs).environment_arguments()
    family = load_family(
        config.model, image_tokens=config.image_tokens, seed=config.seed, dtype=config.dtype, device=config.device
    )
    engine = Engine(family, max_new_tokens=config.max_new_tokens)
    builder = prompt_builder(config.history_turns, config.history_images)
    rows = []
    reports = []
    for env_id in env_ids:
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
        rows.append((
            env_id, f"{report.success:.3f} [{report.success_low:.3f}, {report.success_high:.3f}]",
            f"{report.mean_return:+.3f} ± {report.return_se:.3f}", in_interval(report), f"{report.invalid_rate:.3f}",
            f"{report.mean_turns:.1f}",
        ))  # fmt: skip
    print_rows(open_console(), HEADERS, rows)
    if config.out is not None:
        write_json(config.out, [report.to_dict() for report in reports])
    return reports


def in_interval(report: Report) -> str:
    """The normalized return (0 is random play, 1 the oracle) with its interval, as far as they are known."""
    if report.normalized is None:
        return "-"
    if report.normalized_low is None:
        return f"{report.normalized:.3f}"
    return f"{report.normalized:.3f} [{report.normalized_low:.3f}, {report.normalized_high:.3f}]"


if __name__ == "__main__":
    main(Config, run, __doc__)

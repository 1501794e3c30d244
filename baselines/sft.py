"""Supervised warm start alone: imitate noisy oracle trajectories and save the model.

    python -m baselines.sft --env vlgym/NumberLine-v1 --out runs/warm

It is not a way to a good policy: that is what `baselines.vldac` is for. `learning/warm_start.py`
says how it works.
"""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch
import tyro

from vlgym.env.arguments import read_arguments
from vlgym.errors import check_options
from vlgym.files import seal

from .engine.engine import ModelPolicy, make_engine
from .learning.collect import Environments, count_image_tokens
from .learning.command import main
from .learning.config import MOST_SEED
from .learning.warm_start import WarmConfig, WarmReport, check_oracles, warm_start
from .models.folders import NEW_TOKENS, TrainedLimits, read_limits
from .models.load import load_family
from .models.lora import export_merged
from .runs.distributed import choose_device, device_in_words, set_up_torch
from .runs.folder import check_new, describe, environment_ids

WARM = "warm.json"  # the report in the model's folder


@dataclass(frozen=True)
class Config:
    """Supervised warm start: writes a folder for `--model` of the other commands."""

    env: str = "vlgym/NumberLine-v1"
    """Environment id, or several with commas between."""
    model: str = "tiny"
    """`tiny` (built offline), `smollm2` (pretrained language), a folder, or a Hub name."""
    out: Path = Path("runs/warm")
    """Folder for the model and the report; must be new or empty."""
    seed: int = 0
    """Seed of initialisation, data and batches."""
    max_new_tokens: int | None = None
    """Longest reply in tokens; default half as much again as the oracle's longest."""
    image_tokens: int | None = None
    """Most tokens per image; default 16 to 64 for tiny, for others what their processor allows."""
    env_kwargs: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Further arguments of the environments, as name=value (JSON, else text); may be repeated."""
    device: str = "auto"
    """Torch device: cpu, cuda, cuda:NUMBER, mps; auto is CUDA, else MPS, else the CPU."""
    threads: int = 0
    """CPU threads of torch; 0 leaves torch's choice."""
    warm: WarmConfig = field(default_factory=WarmConfig)
    """The training itself."""


def run(config: Config) -> WarmReport:
    """Train and save; return the report."""
    # All that can be refused is refused before a model is loaded.
    config = replace(config, device=choose_device(config.device))
    env_ids, env_kwargs = environment_ids(config.env), read_arguments(config.env_kwargs, "--env-kwargs")
    config.warm.validate()
    check_options(config, "seed", least=0, most=MOST_SEED)
    check_options(config, "max_new_tokens", "image_tokens", least=1)
    set_up_torch(config.threads, config.device)
    check_oracles(env_ids)
    envs = Environments(env_ids, env_kwargs, 1)
    parsers = envs.parsers()
    check_new(config.out, WARM)

    family = load_family(
        config.model, image_tokens=config.image_tokens or count_image_tokens(config.model, env_ids), seed=config.seed,
        device=config.device, system=read_limits(config.model).system,
    )  # fmt: skip
    family.check_pictures(envs.pictured)
    engine = make_engine(family, max_new_tokens=config.max_new_tokens or NEW_TOKENS, parsers=parsers)
    how = f"{config.warm.noise:.0%} of the labels are random legal actions"
    print(f"warm start on {', '.join(env_ids)}: {how}; {device_in_words(config.device)}")

    # The model's folder has the report, and the limits for later evaluations.
    report = warm_start(engine, envs, config.warm, seed=config.seed, max_new_tokens=config.max_new_tokens)
    policy = ModelPolicy(engine, torch.Generator().manual_seed(config.seed), name=config.model)
    record = describe("sft", asdict(config), env_ids, env_kwargs, policy=policy)
    limits = TrainedLimits(engine.max_new_tokens, family.image_tokens, system=family.system)
    export_merged(family, config.out, {WARM: seal({**record, "report": asdict(report)}), **limits.note()})
    print(f"saved {config.out} after {report.steps} steps and {report.seconds:.0f} s")
    return report


if __name__ == "__main__":
    main(Config, run, __doc__)

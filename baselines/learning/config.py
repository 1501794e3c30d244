"""The options that every learner has, and presets: named sets of values of papers and cards.

Each learner's `Config` extends `RunConfig`. A frozen dataclass holds the resolved values; `tyro`
makes the command line of it; `run.json` stores it.

A preset changes defaults; options given with it win. Each value has its source: "D.2" is the
appendix of VL-DAC's first version (arXiv 2508.04280v1), "code" the configuration in the published
repository, "C" RL4VLM's paper and scripts (arXiv 2405.10292), "LOOP" its paper (arXiv 2502.01600),
"fig. 6" MageBench's (arXiv 2412.04531).
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

import tyro

from vlgym.env.arguments import read_arguments
from vlgym.env.prompts import PromptBuilder, shows_picture
from vlgym.env_groups import read_envs
from vlgym.errors import UserError, check_choice, check_options, flag_of
from vlgym.play.controls import PICTURES

from ..models.folders import MOST_TEMPERATURE
from ..models.load import BUILT, DTYPES
from ..models.lora import LoraOptions, is_tiny
from ..models.smollm import SMOLLM2
from ..runs.distributed import ALONE, World, check_device, check_threads, choose_device
from ..runs.folder import environment_ids
from ..runs.logs import TrackerName, check_tracker
from . import losses
from .batch import Passes, Schedule
from .collect import Environments, RewardOptions
from .warm_start import WARM_STEPS, WarmConfig

DEFAULT_ENV, DEFAULT_MODEL = "vlgym/NumberLine-v1", "tiny"

ADAPTER_RANK = 16  # of published models on CUDA, as in the paper's code
MAX_LOGP_GAP = {"float32": 1e-3, "bfloat16": 0.1}  # far above what rounding was measured to do
MOST_ENVS, MOST_SEED = 2**16, 2**62 - 1


@dataclass(frozen=True)
class RunConfig:
    """Options of every learner, whose folder gets checkpoints, logs and curve.png."""

    algorithm: ClassVar[str]  # name of the learner, part of a run's record
    command: ClassVar[str]  # the module that `python -m` runs
    keeps_reference: ClassVar[bool] = False  # keep the frozen model even without a KL term

    env: str | None = None
    """Environment id, or several with commas between (mixed evenly); default vlgym/NumberLine-v1.
    All ids: `vlgym list`."""
    model: str | None = None
    """tiny (built offline; the default), smollm2 (pretrained language, untrained sight), a folder,
    or the Hub name of a chat model; a language model plays in words (--env-kwargs
    modality=text)."""
    out: Path | None = None
    """Folder of the run, new or empty; default runs/<environment>-<number>."""
    resume: bool = False
    """Continue the run in --out from its newest checkpoint, exactly."""
    preset: str = "none"
    """A named set of values, for example 24gb; options given with it win. `--preset list` prints
    all, with hardware and minutes."""
    seed: int = 0
    """Seed of weights, warm start, sampling and minibatches."""
    updates: int | None = None
    """Updates in all; default 80, or what --env-steps takes."""
    env_steps: int | None = None
    """End after the update that reaches these environment steps, or at --updates if sooner."""
    num_envs: int = 32
    """Environments side by side; 128, with --rollout-steps 2, for a published model on CUDA."""
    envs: str = "local"
    """Place where they are stepped: local (this process), processes[:N], ray[:N], ray:auto[:N],
    ray://HOST:PORT[:N] or tcp://HOST:PORT[,HOST:PORT...][:N]. N worker processes, or actors; by
    default one for each processor, or all that the servers have. The numbers are the same
    everywhere."""
    env_timeout: float = 120.0
    """Seconds after which a worker of --envs that does not answer is given up and replaced; 300 at
    least for its first answer, because it has to start."""
    curriculum: str | None = None
    """Sampler of the level of each training episode: fixed (the highest), fixed:LEVEL, uniform,
    success, learning-progress, prioritized, or a plugin's; NAME@LEVEL leaves higher levels out.
    Held-out episodes then play the highest level. Default: the environment as its id makes it."""
    rollout_steps: int = 8
    """Steps of each environment per update."""
    epochs: int = 2
    """Passes over a rollout."""
    minibatch: int = 64
    """Environment steps per gradient step."""
    micro_batch: int = 64
    """Environment steps per forward pass; smaller takes less memory and gives the same gradient."""
    micro_tokens: int | None = None
    """Fill forward passes up to this many tokens instead, replies of similar length together."""
    recompute: bool = False
    """Gradient checkpointing: less memory and slower updates, the same gradient."""
    lr: float | None = None
    """First learning rate of the policy; default 3e-4 for tiny, else 1e-6, or 5e-5 for adapters."""
    final_lr: float = 0.05
    """Last learning rate as a share of the first (cosine)."""
    kl_coef: float = 0.05
    """Weight of the KL to the reference (beta of eq. 6); 0 keeps no reference model."""
    kl_estimator: losses.KLEstimator = "k2"
    """Estimator of the per-token KL: k2 (bounded gradients), k3 (the published code's) or k1."""
    max_grad_norm: float = 1.0
    """Gradient norm limit of the policy."""
    max_new_tokens: int | None = None
    """Longest reply in tokens; default half as much again as the oracle's longest in the warm
    start, 128 without one."""
    image_tokens: int | None = None
    """Most tokens per image; default 16 to 64 for tiny, for others what their processor allows."""
    history_turns: int | None = None
    """Past turns in the prompt; default each environment's own."""
    history_images: int | None = None
    """Images in the prompt with the current one; default each environment's own (the paper: 4)."""
    pictures: str = "shown"
    """Pictures in training: shown, their own; grey, plain grey; shuffled, another episode's."""
    parser: str | None = None
    """Reply style; default each environment's own."""
    system: str | None = None
    """System message, put first; default that of the model's training or chat template."""
    temperature: float = 1.0
    """Divisor of logits wherever a token is sampled or scored (not in a warm start)."""
    env_kwargs: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Further arguments of the environments, as name=value (JSON, else text); may be repeated."""
    invalid_action: str | None = None
    """Effect of an illegal or unreadable reply: noop, random, terminate; default by environment."""
    invalid_penalty: float | None = None
    """Subtracted from the reward of such a reply; default each environment's own."""
    reward: RewardOptions = field(default_factory=RewardOptions)
    """Changes of the environments' rewards in training; evaluations show them as they are."""
    warm: WarmConfig = field(default_factory=WarmConfig)
    """Supervised warm start; by default for tiny and smollm2 only."""
    lora: LoraOptions = field(default_factory=LoraOptions)
    """Low-rank adapters instead of all weights of the language model."""
    max_logp_gap: float | None = None
    """Largest mean difference per token between the log-probabilities of sampling and of scoring; a
    run beyond it ends. Default 0.001 in float32, 0.1 in bfloat16; 0 sets no limit."""
    train_vision: bool = False
    """Train the vision tower too; its features are then computed again in every pass. Default for
    smollm2 without adapters; never where prompts show no pictures."""
    eval_episodes: int = 200
    """Held-out episodes (split test) per environment, before and after; 0 for none."""
    eval_before: bool = True
    """Play them before the training, too; --no-eval-before where the result is known."""
    eval_minutes: float = 5.0
    """Minutes for those before the training of a published model; fewer are played beyond them."""
    eval_controls: bool = True
    """Play half as many with grey pictures, and with shuffled ones, where prompts show pictures.
    They can be half of a run's turns: a player who sees nothing often plays to the turn limit."""
    eval_every: int = 0
    """Updates between validations (split val), whose best model stays in best/; 0 for none."""
    save_every: int = 10
    """Updates between checkpoints."""
    record_every: int = 10
    """Updates between recordings of an episode to look at (`vlgym ui`); 0 for none."""
    record_keep: int = 20
    """Newest recordings that remain."""
    tracker: TrackerName = "tensorboard"
    """Where the metrics go besides log.jsonl, and a picture with its reply every --record-every
    updates: tensorboard (files in the run's folder), wandb, trackio (each takes its package) or
    none."""
    export: Path | None = None
    """Write the trained model here too, as a plain Hugging Face checkpoint with adapters merged."""
    export_adapter: Path | None = None
    """With --lora.rank: write the adapters here too, as PEFT keeps them."""
    device: str = "auto"
    """Torch device: cpu, cuda, cuda:NUMBER, mps; auto is CUDA, else MPS, else the CPU."""
    dtype: str | None = None
    """float32 or bfloat16 weights; log-probabilities are float32 always. bfloat16 is for adapters;
    their default for published models on CUDA."""
    threads: int | None = None
    """CPU threads of torch, 0 for its choice; default 1 for tiny. It may change the last bits."""

    @property
    def policy_lr(self) -> float:
        """First learning rate of the policy: `lr`, or the default for this model."""
        if self.lr is not None:
            return self.lr
        return 3e-4 if is_tiny(self.model or DEFAULT_MODEL) else 5e-5 if self.lora.rank else 1e-6

    @property
    def most_updates(self) -> int:
        """`updates`, or its default: an update plays one environment step at least."""
        return self.updates or self.env_steps or 80

    @property
    def passes(self) -> Passes:
        """Forward passes of a batch."""
        return Passes(self.micro_batch, self.micro_tokens, self.train_vision)

    def schedule(self, *, rests: int = 0) -> Schedule:
        """The policy's learning rate; it does not learn in the first `rests` updates."""
        return Schedule(self.policy_lr, self.final_lr, self.most_updates, self.env_steps, rests)

    def make_environments(self, world: World = ALONE) -> Environments:
        """The environments, as one process of `world` plays them."""
        return Environments(
            environment_ids(self.env or DEFAULT_ENV), self.environment_arguments(), self.num_envs,
            builder=PromptBuilder.asked(self.history_turns, self.history_images),
            group=getattr(self, "group", 1), where=self.envs, timeout=self.env_timeout, world=world,
            curriculum=self.curriculum, seed=self.seed, pictures=self.pictures,
        )  # fmt: skip

    def resolve(self) -> Self:
        """Fill in what depends on the model, and raise `UserError` for a value out of its range."""
        # Defaults that follow from the model, the device and the prompts.
        model, device = self.model or DEFAULT_MODEL, choose_device(self.device)
        warm_steps, tiny = self.warm.steps, is_tiny(model)
        if warm_steps is None:
            warm_steps = WARM_STEPS if model in BUILT else 0
        large = not tiny and device.startswith("cuda")
        pictured = shows_picture(self.environment_arguments())
        see = pictured and (self.train_vision or (model == SMOLLM2 and not self.lora.rank))
        rank = self.lora.rank
        if rank is None:
            rank = ADAPTER_RANK if large and not see else 0
        dtype = self.dtype or ("bfloat16" if large and rank and not warm_steps else "float32")
        config = replace(
            self, env=self.env or DEFAULT_ENV, model=model, dtype=dtype, device=device,
            warm=replace(self.warm, steps=warm_steps), lora=replace(self.lora, rank=rank), train_vision=see,
            eval_controls=pictured and self.eval_controls,
            threads=int(tiny) if self.threads is None else self.threads,
            max_logp_gap=MAX_LOGP_GAP.get(dtype) if self.max_logp_gap is None else self.max_logp_gap,
        )  # fmt: skip
        config = replace(config, lr=config.policy_lr)

        # Each value by itself, then values that do not go together.
        check_options(
            config, "updates", "env_steps", "rollout_steps", "epochs", "minibatch", "micro_batch",
            "micro_tokens", "max_new_tokens", "image_tokens", "save_every", "record_keep", least=1,
        )  # fmt: skip
        config.require_one_of("preset", "none", *PRESETS)
        config.require_one_of("pictures", *PICTURES)
        check_options(config, "num_envs", least=1, most=MOST_ENVS)
        check_options(config, "seed", least=0, most=MOST_SEED)
        check_options(
            config, "eval_every", "eval_episodes", "record_every", "history_turns",
            "history_images", "kl_coef", "invalid_penalty", "max_logp_gap", least=0,
        )  # fmt: skip
        check_options(config, "lr", "max_grad_norm", "eval_minutes", "env_timeout", above=0)
        check_options(config, "temperature", above=0, most=MOST_TEMPERATURE)
        if config.system is not None and not config.system.strip():
            raise UserError("--system is empty; leave it out for the message of the model's own chat template.")
        check_options(config, "final_lr", least=0, most=1)
        config.require_one_of("kl_estimator", *get_args(losses.KLEstimator))
        config.require_one_of("dtype", *DTYPES)
        config.require_one_of("tracker", *get_args(TrackerName))
        check_tracker(config.tracker)
        read_envs(config.envs, "--envs")
        check_threads(config.threads or 0)
        check_device(config.device)

        if dtype != "float32" and (warm_steps or not config.lora.rank):
            what = "a warm start trains" if config.lora.rank else "this run trains"
            raise UserError(
                f"--dtype {dtype}: {what} all weights, and {dtype} rounds most of their steps away. Add "
                f"--lora.rank 16{' --warm.steps 0' if warm_steps else ''}, or --dtype float32."
            )
        if config.train_vision and config.lora.rank:
            raise UserError("--train-vision trains all weights; it does not go with --lora.rank. Leave one out.")
        if config.export_adapter and not config.lora.rank:
            raise UserError("--export-adapter: this run has no adapters. Add, say, --lora.rank 32, or take --export.")
        for options in (config.warm, config.lora, config.reward):
            options.validate()
        config.environment_arguments()
        return config

    def require_one_of(self, name: str, *choices: str) -> None:
        """Raise `UserError` unless the named value is one of the choices."""
        check_choice(flag_of(name), getattr(self, name), choices)

    def environment_arguments(self) -> dict[str, Any]:
        """Constructor arguments of the environments."""
        named = [(name, getattr(self, name)) for name in ("invalid_action", "invalid_penalty", "parser")]
        arguments = {name: value for name, value in named if value is not None}
        return arguments | read_arguments(self.env_kwargs, "--env-kwargs")


@dataclass(frozen=True)
class ClippedConfig(RunConfig):
    """Options of every learner that clips PPO's ratio."""

    clip: float = 0.2
    """PPO's clip range."""
    clip_high: float | None = None
    """Its upper end, where that is another than --clip (DAPO: 0.28 above, 0.2 below)."""
    ratio: Literal["token", "sequence"] = "token"
    """PPO's ratio: of each token, or the geometric mean over a reply (GSPO; --clip about 4e-4)."""
    entropy_coef: float = 0.0
    """Weight of an entropy bonus: the mean over replies' tokens, in nats."""

    def resolve(self) -> Self:
        config = super().resolve()
        check_options(config, "clip", above=0)
        check_options(config, "clip_high", "entropy_coef", least=0)
        config.require_one_of("ratio", "token", "sequence")
        return config


# ---- presets -------------------------------------------------------------------------------------

Values = Mapping[str, Any]

COMMON: Values = {
    # D.2; lr: 5e-5 to 1e-7, of which the last is 0.002; minibatch 1, gradients of 128 accumulated
    "lr": 5e-5, "final_lr": 0.002, "epochs": 2, "minibatch": 128, "env_steps": 51_200,
    "kl_coef": 0.05, "value_warmup": 2, "eval_episodes": 50, "reward.unreadable_penalty": 0.0,
    "value_coef": 0.15,  # D.2; counts only without the stop-gradient
    # Code; the paper does not say.
    "clip": 0.1, "max_grad_norm": 1.0, "kl_estimator": "k3", "lora.rank": 16, "lora.alpha": 32.0,
    # Ours: 64 x 4 = the 256 steps of the code's rollouts; the code writes up to 1,024 tokens
    "num_envs": 64, "rollout_steps": 4, "updates": 200, "max_new_tokens": 128, "value_lr": 1e-3,
    # Ours: what an 80 GB card holds of Qwen2-VL-7B without recomputing
    "dtype": "bfloat16", "micro_tokens": 4_096,
}  # fmt: skip

CARD_VALUES: Values = {
    # Ours: a token takes as long for 128 rows as for 16; 256 steps a rollout, as the paper's code
    "num_envs": 128, "rollout_steps": 2, "updates": 80, "dtype": "bfloat16",
    "minibatch": 128, "lora.rank": 16,  # D.2; code
    "micro_batch": 16,  # 7B: 31 + 16 x 2.4 = 69 GiB of 74, by the figures of an H200
}  # fmt: skip

PRESETS: dict[str, Values] = {
    "24gb": {
        **CARD_VALUES,
        "num_envs": 16, "rollout_steps": 16,  # a quarter of the keys and values; 256 steps
        "micro_batch": 4,  # 3B: 14 + 4 x 1.8 = 21 GiB of 22, 2B: 8 + 4 x 1.1 = 12; scaled from 7B's
    },
    "80gb": CARD_VALUES,
    # D.2; gamma 0.99 or 1, lambda 0.95 or 0.99
    "paper-miniworld": {**COMMON, "gamma": 0.99, "gae_lambda": 0.95, "history_images": 4},
    # D.2; gamma 0.9, 0.99 or 1, lambda 0.9, 0.95 or 1
    "paper-alfworld": {**COMMON, "gamma": 0.99, "gae_lambda": 0.95, "history_images": 4},
    "paper-ezpoints": {**COMMON, "gamma": 1.0, "gae_lambda": 1.0, "history_images": 1},  # D.2
    # Section 4: 2,000 steps, over 256 a rollout; code: gamma and lambda as ALFWorld, 2 images
    "paper-webshop": {
        **COMMON, "env_steps": 2_000, "updates": 8, "gamma": 0.99, "gae_lambda": 0.95,
        "history_images": 2,
    },
    "paper-rl4vlm": {
        # C; lr: 1e-5 to 1e-9; minibatch 1, gradients of 128 accumulated; thoughts, action as JSON
        "lr": 1e-5, "final_lr": 1e-4, "epochs": 4, "minibatch": 128, "env_steps": 15_000, "clip": 0.1,
        "gamma": 0.9, "gae_lambda": 0.95, "value_coef": 0.5, "reward.unreadable_penalty": 0.0,
        "max_grad_norm": 0.01, "lora.rank": 128, "lora.alpha": 256.0, "max_new_tokens": 256,
        "dtype": "bfloat16", "parser": "json",
        # Ours: 64 x 8 = the 512 steps of a rollout of C, 15,000 in all; what an 80 GB card holds
        "num_envs": 64, "rollout_steps": 8, "updates": 30, "micro_tokens": 4_096,
    },
    "paper-loop": {
        # LOOP: 40 tasks of 6 rollouts, 32 trajectories, no penalty, a constant rate
        "group": 6, "num_envs": 240, "minibatch": 32, "epochs": 2, "clip": 0.1, "lr": 5e-5,
        "final_lr": 1.0, "lora.rank": 16, "lora.alpha": 32.0, "reward.unreadable_penalty": 0.0,
        # D.2: 75 algorithm steps, gamma 0.99 or 1, a KL that LOOP itself has not
        "updates": 75, "gamma": 1.0, "kl_coef": 0.05, "history_images": 4, "eval_episodes": 50,
        # Ours: what an 80 GB card holds of Qwen2-VL-7B without recomputing
        "max_new_tokens": 128, "dtype": "bfloat16", "micro_tokens": 2_048,
    },
    # Fig. 6: "+kl", no penalty, "+rep", "+enc"
    "magebench-rl": {
        "kl_coef": 0.001, "reward.unreadable_penalty": 0.0, "reward.repetition_penalty": 0.2,
        "reward.length_bonus": 0.001, "reward.length_limit": 200,
    },
}  # fmt: skip

# Model, card and computed memory; of the others those of the papers.
HARDWARE = {"24gb": "2B to 3B, 24 GB: 21 GiB", "80gb": "7B, 80 GB: 69 GiB", "magebench-rl": "any"}
H200 = 6.4  # environment steps a second of a 7B model (docs/results.md)

P = TypeVar("P")


def listing() -> str:
    """One line for each preset: hardware, environment steps, minutes."""
    lines = []
    for name, values in PRESETS.items():
        product = math.prod(values.get(key, 0) for key in ("updates", "num_envs", "rollout_steps"))
        steps, time = values.get("env_steps") or product, "steps of the run"
        if steps:
            time = f"{steps:,} steps, {steps / H200 / 60:.0f} minutes with 7B on an H200"
        lines.append(f"{name:16} {HARDWARE.get(name, '7B, 80 GB'):24} {time}")
    return "\n".join(lines)


def chosen(config: type[P], arguments: Sequence[str]) -> P:
    """The defaults of a command line, changed by the preset that the arguments name.
    Without one, a published model on CUDA has `CARD_VALUES`' sizes of a rollout. `--preset`
    without a name, or with `list`, prints the presets and ends the program."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--preset", nargs="?", default="none", const="list")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--device", default="auto")
    line = parser.parse_known_args(arguments)[0]
    if line.preset == "list":
        print(listing())
        raise SystemExit(0)
    cuda = choose_device(line.device).startswith("cuda")
    if line.preset == "none" and cuda and not is_tiny(line.model):
        sizes = {name: CARD_VALUES[name] for name in ("num_envs", "rollout_steps")}
        return replace(config(), **sizes)  # type: ignore[type-var]
    return apply_preset(config(), line.preset)


def apply_preset(config: P, name: str) -> P:
    """A configuration with a preset's values; a `UserError` where it is of another learner."""
    if check_choice("--preset", name, ("none", *PRESETS)) == "none":
        return config
    values: dict[str, Any] = {"preset": name}
    known = {item.name for item in fields(config)}  # type: ignore[arg-type]
    for path, value in PRESETS[name].items():
        group, _, inner = path.rpartition(".")
        if (group or inner) not in known:
            other = "this learner does not have; the presets of other learners are for their own commands"
            raise UserError(f"--preset {name} sets {path}, which {other}.")
        if group:
            value = replace(values.get(group, getattr(config, group)), **{inner: value})
        values[group or inner] = value
    return replace(config, **values)  # type: ignore[type-var]

"""The options that every learner has, and the rules for resuming with them.

Each learner's `Config` extends `RunConfig` by its own options. A frozen dataclass holds the resolved values; `tyro`
makes the command line of it; `run.json` stores it.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args, get_type_hints

import tyro

from vlgym.env.arguments import fits, read_arguments
from vlgym.env.prompts import PromptBuilder
from vlgym.env_groups import read_options
from vlgym.errors import UserError, check_choice, check_number, nearest
from vlgym.parsers import check_named
from vlgym.play.controls import PICTURES

from ..models.folders import MOST_TEMPERATURE
from ..models.load import DTYPES
from ..models.lora import LoraOptions, is_tiny
from ..runs import folder
from ..runs.distributed import ALONE, World, check_device, check_threads, choose_device, device_in_words
from ..runs.folder import environment_ids
from . import losses
from .batch import Passes, Schedule
from .collect import Environments, RewardOptions
from .presets import PRESETS
from .warm_start import WarmConfig

FREE_ON_RESUME = frozenset(
    {
        "out", "resume", "updates", "env_steps", "save_every", "eval_every", "eval_episodes", "eval_controls",
        "eval_minutes", "threads", "micro_batch", "micro_tokens", "recompute", "export", "export_adapter",
        "record_every", "record_keep", "max_logp_gap", "envs", "env_timeout",
    }
)  # fmt: skip

C = TypeVar("C", bound="RunConfig")


def saved_config(asked: C) -> C:
    """The configuration of the run to resume; what was asked for beyond it must be free to change.

    Raises:
        UserError: no --out, no run there, or an option that differs from the run's.
    """
    if asked.out is None:
        raise UserError("--resume needs the folder of the run: --resume --out runs/...")
    kind, default = type(asked), type(asked)()
    saved = folder.read_run(asked.out)["config"]
    groups = {item.name: getattr(default, item.name) for item in fields(kind)}
    unknown = sorted(set(saved) - {*groups, "algorithm"})
    for name, group in groups.items():
        if is_dataclass(group) and not isinstance(group, type) and isinstance(saved.get(name), dict):
            unknown += sorted(set(saved[name]) - {item.name for item in fields(group)})
    if saved.get("algorithm") == kind.algorithm and unknown:
        raise UserError(
            f"The run in {asked.out} has an option that this version does not know, {unknown[0]!r}; "
            f"resume it with the version that began it.{nearest(unknown[0], [item.name for item in fields(kind)])}"
        )
    values: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for item in fields(kind):
        standard = getattr(default, item.name)
        before = _revive(standard, saved.get(item.name, standard))
        if not fits(before, hints[item.name]):
            raise UserError(f"{asked.out / folder.RUN_FILE} says {item.name}={before!r:.80}; start a new run.")
        values[item.name] = _resumed(asked.out, item.name, getattr(asked, item.name), standard, before)
    return replace(kind(**values), out=asked.out, resume=True)


def _resumed(out: Path, name: str, asked: Any, standard: Any, before: Any) -> Any:
    """The value of an option, or of a group of them, in a resumed run: what is asked for, or else what it was.

    Raises:
        UserError: it is asked to be another, and is not free to change; or it was code, and is not asked for.
    """
    if is_dataclass(before) and not isinstance(before, type):
        inner = {
            item.name: _resumed(
                out, f"{name}.{item.name}", *(getattr(options, item.name) for options in (asked, standard, before))
            )
            for item in fields(before)
        }
        return replace(before, **inner)
    if asked == standard:
        if before != standard:
            _check_record(out, name, before)
        return before
    if name.split(".")[0] in FREE_ON_RESUME or asked == before:
        return asked
    raise UserError(
        f"The run in {out} has {flag_of(name)} {before}, but {asked} was asked for. Leave that option out to go on "
        "with the run as it was, or start a new run in another --out."
    )


def _check_record(out: Path | None, name: str, value: Any) -> None:
    """Refuse a record's value that names a folder to write, or that runs code: an import string, and a Ray cluster
    elsewhere, which sends pickles."""
    source = str((out or Path()) / folder.RUN_FILE)
    if name in ("parser", "env_kwargs"):
        arguments = {name: value} if name == "parser" else read_arguments(value, flag_of(name))
        check_named(arguments, source, _write_option(name, value))
    elif name in ("export", "export_adapter") or (name == "envs" and value.startswith("ray://")):
        why = "a Ray cluster, which runs code here" if name == "envs" else "a folder to write"
        raise UserError(f"{source} names {why}: give it on the command line ({_write_option(name, value)}).")


def _write_option(name: str, value: Any) -> str:
    values = value if name == "env_kwargs" else (value,)
    return shlex.join(word for each in values for word in (flag_of(name), str(each)))


def list_repeated(config: RunConfig) -> str:
    """Return the options that a command which resumes the run must repeat, each after a blank."""
    written = ""
    for item in fields(config):
        value = getattr(config, item.name)
        try:
            if value is not None:
                _check_record(config.out, item.name, value)
        except UserError:
            written += f" {_write_option(item.name, value)}"
    return written


def _revive(standard: Any, saved: Any) -> Any:
    """A value from JSON as the dataclass had it."""
    if is_dataclass(standard) and isinstance(saved, dict):
        kind: Any = type(standard)
        return kind(**saved)
    if isinstance(standard, tuple) and isinstance(saved, list):
        return tuple(saved)
    return saved


DEFAULT_ENV, DEFAULT_MODEL = "vlgym/NumberLine-v1", "tiny"

ADAPTER_RANK = 16  # of published models on CUDA, as in the paper's code; alpha, twice that, is as there, too

MAX_LOGP_GAP = {"float32": 1e-3, "bfloat16": 0.1}
"""By the type of the weights, far above what rounding was measured to do."""

MOST_ENVS, MOST_SEED = 2**16, 2**62 - 1


@dataclass(frozen=True)
class RunConfig:
    """Options of every learner, which writes checkpoints, log.jsonl, TensorBoard files and curve.png to its folder."""

    algorithm: ClassVar[str]
    """Name of the learner, part of a run's record."""
    command: ClassVar[str]
    """The module that `python -m` runs."""
    keeps_reference: ClassVar[bool] = False
    """The learner keeps the frozen model even without a KL term."""

    env: str | None = None
    """Environment id, or several with commas between (mixed evenly); default vlgym/NumberLine-v1.

    All ids: `vlgym list`.
    """
    model: str | None = None
    """tiny (built offline; the default), a folder, or the Hub name of a model of a supported family."""
    out: Path | None = None
    """Folder of the run, new or empty; default runs/<environment>-<number>."""
    resume: bool = False
    """Continue the run in --out from its newest checkpoint, exactly."""
    preset: str = "none"
    """A named set of values, for example 24gb; options given with it win. `--preset list` prints all, with hardware and
    minutes."""
    seed: int = 0
    """Seed of weights, warm start, sampling and minibatches."""
    updates: int | None = None
    """Updates in all; default 80, or what --env-steps takes."""
    env_steps: int | None = None
    """End after the update that reaches this many environment steps; with --updates, at whichever comes first."""
    num_envs: int = 32
    """Environments played side by side."""
    envs: str = "local"
    """Place where they are stepped: local (this process), processes[:N], ray[:N], ray:auto[:N], ray://HOST:PORT[:N] or
    tcp://HOST:PORT[,HOST:PORT...][:N].

    N worker processes, or actors; by default one for each processor, or all that the servers have. The numbers are
    the same everywhere.
    """
    env_timeout: float = 120.0
    """Seconds after which a worker of --envs that does not answer is given up and replaced; 300 at least for its first
    answer, because it has to start."""
    curriculum: str | None = None
    """Sampler of the level of each training episode: fixed (the highest), fixed:LEVEL, uniform, success,
    learning-progress, prioritized, or a plugin's; NAME@LEVEL leaves higher levels out.

    Held-out episodes then play the highest level. Default: the environment as its id makes it.
    """
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
    """First learning rate of the policy; default 3e-4 for tiny, 1e-6 for published models, 5e-5 for their adapters."""
    final_lr: float = 0.05
    """Last learning rate as a share of the first (cosine)."""
    kl_coef: float = 0.05
    """Weight of the KL to the reference (beta of eq. 6); 0 keeps no reference model."""
    kl_estimator: losses.KLEstimator = "k2"
    """Estimator of the per-token KL: k2 (bounded gradients), k3 (the published code's) or k1."""
    max_grad_norm: float = 1.0
    """Gradient norm limit of the policy."""
    max_new_tokens: int | None = None
    """Longest reply in tokens.

    Default half as much again as the oracle's longest in the warm start, 128 without one.
    """
    image_tokens: int | None = None
    """Most tokens per image; default for tiny 16 to 64 by environment, for others what their processor allows."""
    history_turns: int | None = None
    """Past turns in the prompt; default each environment's own."""
    history_images: int | None = None
    """Images in the prompt, the current one included; default each environment's own (the paper: 4)."""
    pictures: str = "shown"
    """Pictures of all prompts in training: shown, their own; grey, plain grey ones; shuffled, another episode's."""
    parser: str | None = None
    """Reply style; default each environment's own."""
    system: str | None = None
    """System message, put first in the prompt; default that of the model's own training, else of its chat template."""
    temperature: float = 1.0
    """Divisor of logits wherever a token is sampled or scored, evaluations included (not in a warm start)."""
    env_kwargs: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Further constructor arguments of the environments, as name=value (JSON, else text); giving it again adds."""
    invalid_action: str | None = None
    """Effect of an unreadable or illegal reply: noop, random or terminate; default each environment's own."""
    invalid_penalty: float | None = None
    """Subtracted from the reward of such a reply; default each environment's own."""
    reward: RewardOptions = field(default_factory=RewardOptions)
    """Changes of the environments' rewards in training; evaluations show them as they are."""
    warm: WarmConfig = field(default_factory=WarmConfig)
    """Supervised warm start; by default for tiny only (a published model needs none)."""
    lora: LoraOptions = field(default_factory=LoraOptions)
    """Low-rank adapters instead of all weights of the language model."""
    max_logp_gap: float | None = None
    """Largest mean difference per token between the log-probabilities of sampling and of scoring; a run beyond it ends.

    Default 0.001 in float32, 0.1 in bfloat16; 0 sets no limit.
    """
    train_vision: bool = False
    """Train the vision tower too; its features are then computed again in every pass."""
    eval_episodes: int = 200
    """Held-out episodes (split test) per environment, before and after; 0 for none."""
    eval_before: bool = True
    """Play them before the training, too; --no-eval-before where it is known how good the model is."""
    eval_minutes: float = 5.0
    """Time for those before the training of a published model: fewer are played where that many would take longer."""
    eval_controls: bool = True
    """Play half as many with grey pictures, and with shuffled ones, too. They can be half of a run's turns: a player
    who sees nothing often plays to the turn limit."""
    eval_every: int = 0
    """Updates between validations (split val), by which the best model is chosen and kept in best/; 0 for none."""
    save_every: int = 10
    """Updates between checkpoints."""
    record_every: int = 10
    """Updates between recordings of an episode to look at (`vlgym ui`); 0 for none."""
    record_keep: int = 20
    """Newest recordings that remain."""
    export: Path | None = None
    """Write the trained model here too, as a plain Hugging Face checkpoint with adapters merged."""
    export_adapter: Path | None = None
    """With --lora.rank: write the adapters here too, as PEFT keeps them."""
    device: str = "auto"
    """Torch device: cpu, cuda, cuda:NUMBER, mps; auto is CUDA where there is one, else MPS, else the CPU."""
    dtype: str | None = None
    """float32 or bfloat16 weights; log-probabilities are float32 always.

    bfloat16 is for adapters; their default for published models on CUDA. Otherwise float32.
    """
    threads: int | None = None
    """CPU threads of torch, 0 for its own choice; default 1 for tiny. Another number may change the last bits."""

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
        """The environments, as one process of `world` plays them.

        Raises:
            UserError: an id or an option is wrong, or the environments cannot be split evenly over the processes.
        """
        return Environments(
            environment_ids(self.env or DEFAULT_ENV), self.environment_arguments(), self.num_envs,
            builder=PromptBuilder.asked(self.history_turns, self.history_images), group=getattr(self, "group", 1),
            where=self.envs, timeout=self.env_timeout, world=world, curriculum=self.curriculum, seed=self.seed,
            pictures=self.pictures,
        )  # fmt: skip

    def in_words(self) -> str:
        """The trained weights and their type, once resolved."""
        trained = f"adapters of rank {self.lora.rank}" if self.lora.rank else "all weights"
        where = device_in_words(self.device)
        return f"training {trained} of {self.model}: {self.dtype}, {where}, learning rate {self.policy_lr:g}"

    def resolve(self) -> Self:
        """Fill in what depends on the model, and check ranges.

        Raises:
            UserError: a value is out of its range.
        """
        model, device = self.model or DEFAULT_MODEL, choose_device(self.device)
        warm_steps = self.warm.steps if self.warm.steps is not None else (600 if model == "tiny" else 0)
        tiny = is_tiny(model)
        large = not tiny and device.startswith("cuda")
        rank = self.lora.rank if self.lora.rank is not None else ADAPTER_RANK if large and not self.train_vision else 0
        dtype = self.dtype or ("bfloat16" if large and rank and not warm_steps else "float32")
        config = replace(
            self, env=self.env or DEFAULT_ENV, model=model, warm=replace(self.warm, steps=warm_steps), dtype=dtype,
            lora=replace(self.lora, rank=rank), device=device,
            threads=int(tiny) if self.threads is None else self.threads,
            max_logp_gap=MAX_LOGP_GAP.get(dtype) if self.max_logp_gap is None else self.max_logp_gap,
        )  # fmt: skip
        config = replace(config, lr=config.policy_lr)
        config.require_at_least(
            1, "updates", "env_steps", "rollout_steps", "epochs", "minibatch", "micro_batch", "micro_tokens",
            "max_new_tokens", "image_tokens", "save_every", "record_keep",
        )  # fmt: skip
        config.require_one_of("preset", "none", *PRESETS)
        config.require_one_of("pictures", *PICTURES)
        check_number("--num-envs", config.num_envs, 1, MOST_ENVS)
        check_number("--seed", config.seed, 0, MOST_SEED)
        config.require_at_least(
            0, "eval_every", "eval_episodes", "record_every", "history_turns", "history_images",
            "kl_coef", "invalid_penalty", "max_logp_gap",
        )  # fmt: skip
        config.require_positive("lr", "max_grad_norm", "eval_minutes")
        check_number("--temperature", config.temperature, above=0, most=MOST_TEMPERATURE)
        if config.system is not None and not config.system.strip():
            raise UserError("--system is empty; leave it out for the message of the model's own chat template.")
        config.require_share("final_lr")
        config.require_one_of("kl_estimator", *get_args(losses.KLEstimator))
        config.require_one_of("dtype", *DTYPES)
        read_options(config.envs, "--envs")
        check_number("--env-timeout", config.env_timeout, above=0)
        check_threads(config.threads or 0)
        check_device(config.device)
        if dtype != "float32" and (warm_steps or not config.lora.rank):
            what = "a warm start trains" if config.lora.rank else "this run trains"
            raise UserError(
                f"--dtype {dtype}: {what} all weights, and {dtype} rounds most of their steps away. Add --lora.rank 16"
                f"{' --warm.steps 0' if warm_steps else ''}, or --dtype float32."
            )
        if config.train_vision and config.lora.rank:
            raise UserError("--train-vision trains all weights; it does not go with --lora.rank. Leave one out.")
        if config.export_adapter and not config.lora.rank:
            raise UserError("--export-adapter: this run has no adapters. Add, say, --lora.rank 32, or take --export.")
        for options in (config.warm, config.lora, config.reward):
            options.validate()
        config.environment_arguments()
        return config

    def require_positive(self, *names: str) -> None:
        """Raise `UserError` unless the named values are > 0."""
        for name in names:
            check_number(flag_of(name), getattr(self, name), above=0)

    def require_at_least(self, least: int, *names: str) -> None:
        """Raise `UserError` unless the named values are >= `least`, or None."""
        for name in names:
            if getattr(self, name) is not None:
                check_number(flag_of(name), getattr(self, name), least)

    def require_share(self, *names: str) -> None:
        """Raise `UserError` unless the named values are in [0, 1]."""
        for name in names:
            check_number(flag_of(name), getattr(self, name), 0, 1)

    def require_one_of(self, name: str, *choices: str) -> None:
        """Raise `UserError` unless the named value is one of the choices."""
        check_choice(flag_of(name), getattr(self, name), choices)

    def environment_arguments(self) -> dict[str, Any]:
        """Constructor arguments of the environments.

        Raises:
            UserError: an --env-kwargs entry is not name=value.
        """
        named = {name: getattr(self, name) for name in ("invalid_action", "invalid_penalty", "parser")}
        arguments: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        return arguments | read_arguments(self.env_kwargs, "--env-kwargs")


@dataclass(frozen=True)
class ClippedConfig(RunConfig):
    """Options of every learner that clips PPO's ratio."""

    clip: float = 0.2
    """PPO's clip range."""
    clip_high: float | None = None
    """Its upper end, where that is another than --clip (DAPO: 0.28 above, 0.2 below)."""
    ratio: Literal["token", "sequence"] = "token"
    """PPO's ratio: of each token, or the geometric mean over a reply (GSPO; its --clip is about 4e-4)."""
    entropy_coef: float = 0.0
    """Weight of an entropy bonus: the mean over replies' tokens, in nats."""

    def resolve(self) -> Self:
        """Fill in what depends on the model, and check ranges."""
        config = super().resolve()
        config.require_positive("clip")
        config.require_at_least(0, "clip_high", "entropy_coef")
        config.require_one_of("ratio", "token", "sequence")
        return config


def flag_of(name: str) -> str:
    """The option of a field, as it is written on a command line."""
    return f"--{name.replace('_', '-')}"

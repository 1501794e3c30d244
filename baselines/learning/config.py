"""The options that every learner has, and the rules for resuming with them.

Each learner's `Config` extends `RunConfig` by its own options. A frozen dataclass holds the resolved values; `tyro`
makes the command line of it; `run.json` stores it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_args

import tyro
import yaml

from vlgym.errors import UserError, check_choice, check_number, nearest
from vlgym.limited_yaml import read_yaml

from ..models.load import DTYPES
from ..models.lora import LoraOptions
from ..runs import folder
from ..runs.logs import check_tracker
from ..runs.threads import check_device, check_threads
from . import losses
from .presets import PRESETS
from .rewards import RewardOptions
from .warm_start import WarmConfig

DEFAULT_ENV, DEFAULT_MODEL = "vlgym/NumberLine-v0", "tiny"

MOST_ENVS, MOST_SEED = 2**16, 2**62 - 1

FREE_ON_RESUME = frozenset(
    {
        "out", "resume", "overwrite", "yes", "updates", "env_steps", "save_every", "eval_every", "eval_episodes",
        "threads", "track", "micro_batch", "micro_tokens", "recompute", "export",
    }
)  # fmt: skip


@dataclass(frozen=True)
class RunConfig:
    """Options of every learner."""

    algorithm: ClassVar[str]
    """Name of the learner, part of a run's record."""
    command: ClassVar[str]
    """The module that `python -m` runs."""

    env: str | None = None
    """Environment id, or several with commas between (mixed evenly); default vlgym/NumberLine-v0.

    All ids: `vlgym list`.
    """
    model: str | None = None
    """tiny (built offline; the default), a folder, or the Hub name of a model of a supported family."""
    out: Path | None = None
    """Folder of the run, new or empty; default runs/<environment>-<number>."""
    resume: bool = False
    """Go on with the run in --out, exactly where its newest checkpoint stands."""
    overwrite: bool = False
    """Delete the run in --out and begin a new one there, after asking."""
    yes: bool = False
    """With --overwrite: delete without asking."""
    preset: str = "none"
    """A named set of values, for example paper-miniworld; options beside it win. All: docs/baselines/README.md."""
    seed: int = 0
    """Seed of weights, warm start, sampling and minibatches."""
    updates: int = 80
    """Updates in all."""
    env_steps: int | None = None
    """End after the update that reaches this many environment steps, whatever --updates says."""
    num_envs: int = 32
    """Environments played side by side."""
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
    kl_estimator: losses.KLEstimator = "k3"
    """Estimator of the per-token KL."""
    max_grad_norm: float = 1.0
    """Gradient norm limit of the policy."""
    max_new_tokens: int | None = None
    """Longest reply in tokens.

    Default half as much again as the oracle's longest in the warm start, 128 without one.
    """
    image_tokens: int | None = None
    """Most tokens per image; default 16 for tiny, 256 for published models."""
    history_turns: int | None = None
    """Past turns in the prompt; default each environment's own."""
    history_images: int | None = None
    """Images in the prompt, the current one included; default each environment's own (the paper: 4)."""
    parser: str | None = None
    """Reply style; default each environment's own."""
    env_kwargs: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Further constructor arguments of the environments, as name=value (YAML values); giving it again adds."""
    invalid_action: str | None = None
    """What an unreadable or illegal reply does: noop, random or terminate; default each environment's own."""
    invalid_penalty: float | None = None
    """Subtracted from the reward of such a reply; default each environment's own."""
    reward: RewardOptions = field(default_factory=RewardOptions)
    """What training makes of the environments' rewards; evaluations show them as they are."""
    warm: WarmConfig = field(default_factory=WarmConfig)
    """Supervised warm start; by default for tiny only (a published model needs none)."""
    lora: LoraOptions = field(default_factory=LoraOptions)
    """Low-rank adapters instead of all weights of the language model."""
    train_vision: bool = False
    """Train the vision tower too; its features are then computed again in every pass."""
    scoring: str = "auto"
    """How replies are scored.

    Shared (each distinct prompt once), flat (the library's forward pass) or auto (shared on CPU).
    """
    double_buffer: bool = False
    """Step one half of the environments while the model answers the other half."""
    eval_episodes: int = 200
    """Held-out episodes (split test) per environment, before and after; 0 for none."""
    eval_every: int = 0
    """Updates between further held-out evaluations; 0 for none."""
    save_every: int = 10
    """Updates between checkpoints."""
    export: Path | None = None
    """Write the trained model here too, as a plain Hugging Face checkpoint with adapters merged."""
    device: str = "cpu"
    """Torch device."""
    dtype: str = "float32"
    """float32 or bfloat16 weights; log-probabilities are float32 always."""
    threads: int = 0
    """CPU threads of torch; 0 leaves torch's choice. Another number may change the last bits."""
    deterministic: bool = True
    """On a CPU, the same numbers in every run with as many threads; without, updates are a little faster."""
    track: str = "none"
    """none, wandb or trackio."""

    @property
    def policy_lr(self) -> float:
        """First learning rate of the policy: `lr`, or the default for this model."""
        if self.lr is not None:
            return self.lr
        return 3e-4 if (self.model or DEFAULT_MODEL) == "tiny" else 5e-5 if self.lora.rank else 1e-6

    @property
    def flat(self) -> bool:
        """Whether replies are scored by the library's forward pass."""
        return self.scoring == "flat" or (self.scoring == "auto" and self.device != "cpu")

    def resolve(self) -> Self:
        """Fill in what depends on the model, and check ranges.

        Raises:
            UserError: a value is out of its range.
        """
        model = self.model or DEFAULT_MODEL
        warm_steps = self.warm.steps if self.warm.steps is not None else (600 if model == "tiny" else 0)
        config = replace(
            self, env=self.env or DEFAULT_ENV, model=model, lr=self.policy_lr,
            warm=replace(self.warm, steps=warm_steps),
        )  # fmt: skip
        config.require_at_least(
            1, "updates", "env_steps", "rollout_steps", "epochs", "minibatch", "micro_batch", "micro_tokens",
            "max_new_tokens", "image_tokens", "save_every",
        )  # fmt: skip
        config.require_one_of("preset", "none", *PRESETS)
        check_number("--num-envs", config.num_envs, 1, MOST_ENVS)
        check_number("--seed", config.seed, 0, MOST_SEED)
        config.require_at_least(
            0, "eval_every", "eval_episodes", "history_turns", "history_images", "kl_coef", "invalid_penalty"
        )
        config.require_positive("lr", "max_grad_norm")
        config.require_share("final_lr")
        config.require_one_of("scoring", "auto", "shared", "flat")
        config.require_one_of("kl_estimator", *get_args(losses.KLEstimator))
        config.require_one_of("dtype", *DTYPES)
        check_threads(config.threads)
        check_device(config.device)
        check_tracker(config.track)
        if config.train_vision and config.lora.rank:
            raise UserError("--train-vision trains all weights; it does not go with --lora.rank. Leave one out.")
        if config.overwrite and config.out is None:
            raise UserError("--overwrite needs the folder of the run that is to be deleted: --overwrite --out runs/...")
        for options in (config.warm, config.lora, config.reward):
            options.validate()
        config.environment_arguments()
        return config

    def require_positive(self, *names: str) -> None:
        """Raise `UserError` unless the named values are > 0."""
        for name in names:
            check_number(_flag(name), getattr(self, name), above=0)

    def require_at_least(self, least: int, *names: str) -> None:
        """Raise `UserError` unless the named values are >= `least`, or None."""
        for name in names:
            if getattr(self, name) is not None:
                check_number(_flag(name), getattr(self, name), least)

    def require_share(self, *names: str) -> None:
        """Raise `UserError` unless the named values are in [0, 1]."""
        for name in names:
            check_number(_flag(name), getattr(self, name), 0, 1)

    def require_one_of(self, name: str, *choices: str) -> None:
        """Raise `UserError` unless the named value is one of the choices."""
        check_choice(_flag(name), getattr(self, name), choices)

    def environment_arguments(self) -> dict[str, Any]:
        """Constructor arguments of the environments.

        Raises:
            UserError: an --env-kwargs entry is not name=value.
        """
        named = {name: getattr(self, name) for name in ("invalid_action", "invalid_penalty", "parser")}
        arguments: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        for entry in self.env_kwargs:
            name, equals, value = entry.partition("=")
            if not equals or not name.isidentifier():
                raise UserError(f"--env-kwargs {entry}: write name=value, for example --env-kwargs planner=global")
            try:
                arguments[name] = read_yaml(value, most_characters=100_000)
            except yaml.YAMLError as error:
                raise UserError(f"--env-kwargs {entry}: the value is not YAML ({error}).") from None
        return arguments


C = TypeVar("C", bound=RunConfig)


def saved_config(asked: C) -> C:
    """The configuration of the run to resume; what was asked for beyond it must be free to change.

    Raises:
        UserError: no --out, no run there, or an option that differs from the run's.
    """
    if asked.out is None:
        raise UserError("--resume needs the folder of the run: --resume --out runs/...")
    if asked.overwrite:
        raise UserError("--resume goes on with the run in --out, --overwrite deletes it; leave one of them out.")
    kind, default = type(asked), type(asked)()
    saved = folder.read_run(asked.out)["config"]
    unknown = sorted(set(saved) - {item.name for item in fields(kind)} - {"algorithm"})
    if saved.get("algorithm") == kind.algorithm and unknown:
        raise UserError(
            f"The run in {asked.out} has an option that this version does not know, {unknown[0]!r}; "
            f"resume it with the version that began it.{nearest(unknown[0], [item.name for item in fields(kind)])}"
        )
    values: dict[str, Any] = {}
    for item in fields(kind):
        value, standard = getattr(asked, item.name), getattr(default, item.name)
        before = _revive(standard, saved.get(item.name, standard))
        if value == standard:
            values[item.name] = before
        elif item.name in FREE_ON_RESUME or value == before:
            values[item.name] = value
        else:
            raise UserError(
                f"The run in {asked.out} has {_flag(item.name)} {before}, but {value} "
                "was asked for. Leave that option out to go on with the run as it was, "
                "or start a new run in another --out."
            )
    return replace(kind(**values), out=asked.out, resume=True, overwrite=False)


def _revive(standard: Any, saved: Any) -> Any:
    """A value from JSON as the dataclass had it."""
    if is_dataclass(standard) and isinstance(saved, dict):
        kind: Any = type(standard)
        return kind(**saved)
    if isinstance(standard, tuple) and isinstance(saved, list):
        return tuple(saved)
    return saved


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"

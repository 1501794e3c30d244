"""Imitation of noisy oracle trajectories until the model reads the pictures.

On a share of the steps (`noise`) the oracle's action is replaced by a random legal one, executed
and imitated as it is, so the policy knows format and picture but plays imperfectly: reinforcement
learning improves that.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from vlgym.errors import UserError, check_number, check_options
from vlgym.evaluation import evaluate
from vlgym.parsers import read_reply, write_reply
from vlgym.play.curriculum import Course
from vlgym.play.env_failures import ENV_ERROR, EnvFailures, Failure, close_env, warn
from vlgym.play.rollout import Runner
from vlgym.registry import get_registry
from vlgym.registry.making import unwrap
from vlgym.terminal import Pace
from vlgym.types import Reply, Turn

from ..engine.engine import Engine, ModelPolicy, pad_rows
from ..models.family import Family, Prompt
from ..models.qwen import TinyQwen2VL
from ..runs import distributed
from ..runs.distributed import World, memory_advice
from .collect import Environments


@dataclass(frozen=True)
class WarmConfig:
    """The supervised warm start."""

    steps: int | None = None
    """Most gradient steps; 0 for no warm start. It ends earlier at `reading`. Default 600."""
    reading: float = 0.9
    """Stop as soon as this share of the replies in validation, sampled at temperature 1, is word
    for word what the oracle writes with the same action, so that the thought names what the picture
    shows."""
    noise: float = 0.5
    """Share of steps on which a random legal action is played, and imitated, not the oracle's."""
    samples: int = 2048
    """Oracle turns to collect, in all environments together."""
    batch: int = 64
    """Turns per gradient step."""
    lr: float = 1e-3
    """Learning rate after 50 steps of warm-up."""
    check_every: int = 40
    """Gradient steps between validations."""
    val_episodes: int = 32
    """Validation episodes, over all environments; fewer where episodes are long."""

    def validate(self) -> None:
        """Raise `UserError` for a value out of its range."""
        check_options(self, "noise", "reading", group="warm.", least=0, most=1)
        check_options(self, "samples", "batch", "check_every", "val_episodes", group="warm.", least=1)
        check_number("--warm.steps", self.steps or 0, 0, hint="0 is no warm start.")
        check_options(self, "lr", group="warm.", above=0)


@dataclass
class WarmReport:
    """Result of the warm start, part of the run's record."""

    steps: int = 0
    samples: int = 0
    longest_reply: int = 0  # tokens
    max_new_tokens: int = 0  # reply limit that follows from it, or that was given
    labels_replaced: float = 0.0  # share of labels that are not the oracle's reply
    seconds: float = 0.0
    success: list[tuple[int, float]] = field(default_factory=list)  # validation's, by gradient step
    reading: float = math.nan  # share of the last validation's replies that read the picture
    loss: float = math.nan
    unread_loss: float = math.nan  # of a model that knows each prompt's text and no picture


WARM_STEPS = 600  # most gradient steps by default
LARGE_PASS = 8  # turns a pass of a model that is not tiny; SmolLM2 takes 4.6 GB for them
MOST_COMPARED = 500  # replies of an environment that a validation compares with the oracle's


class Reader:
    """A policy, and how often its reply is what the oracle writes with the same action."""

    def __init__(self, policy: ModelPolicy) -> None:
        self.policy, self.name = policy, policy.name
        self.compared = self.read = 0  # replies compared, and those of them that are

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer each environment's prompt."""
        replies = self.policy.reply(turns)
        for turn, reply in zip(turns, replies, strict=True):
            env = unwrap(turn.env)
            if self.compared == MOST_COMPARED:
                break
            legal = env.legal_actions()
            actions = read_reply(env.parser, reply.text, legal).actions
            self.compared += 1
            if actions and actions[0] in legal:  # of a plan the thought explains the first
                self.read += reply.text == write_reply(env.parser, actions, env.think(actions[0]), legal)
        return replies


class NoisyOracle:
    """The oracle with a share of random legal actions; a reply's `extra` is its label, or None."""

    name = "noisy-oracle"

    def __init__(self, noise: float, rng: np.random.Generator) -> None:
        self.noise, self.rng = noise, rng
        self.labels = self.replaced = 0

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer each environment; a state without an oracle's action gets a random legal one."""
        replies = []
        for turn in turns:
            env = unwrap(turn.env)
            text = right = env.solve()
            if right is None or self.rng.random() < self.noise:
                legal = env.legal_actions()
                action = legal[int(self.rng.integers(len(legal)))]
                text = write_reply(env.parser, [action], env.think(action), legal)
            self.labels += right is not None
            self.replaced += right is not None and text != right
            replies.append(Reply(text or "", None if right is None else text))
        return replies


def check_oracles(env_ids: Sequence[str]) -> None:
    """Raise `UserError` where an environment has no oracle to imitate."""
    for env_id in env_ids:
        if get_registry().get(env_id).oracle == "none":
            raise UserError(
                f"{env_id} has no oracle, so there is nothing to imitate; use --warm.steps 0 (reinforcement "
                "learning only) or an environment that `vlgym show` lists with an oracle."
            )


def collect(
    envs: Environments, config: WarmConfig, seed: int, family: Family, on_failure: Callable[[Failure], object] = warn
) -> tuple[list[tuple[Prompt, torch.Tensor]], float]:
    """Play the noisy oracle; return (prompt, reply ids) pairs and the share of replaced labels."""
    ids = [env_id for env_id in envs.ids for _ in range(max(1, 16 // len(envs.ids)))]

    def make_env(index: int, env_id: str | None = None) -> Any:
        return envs.group.make(env_id or ids[index], **envs.kwargs)

    def exchange(index: int, env: Any, env_id: str) -> Any:
        close_env(env)
        return make_env(index, env_id)

    runner = Runner(
        [make_env(i) for i in range(len(ids))], split="train", builder=envs.builder,
        remake=make_env, course=envs.course and Course(f"uniform{envs.course.limit}", envs.ids, seed=seed),
        exchange=exchange, pictures=envs.pictures,
        first_episode=1_000_000 + seed * 100_000,  # apart from RL's own training episodes
        failures=EnvFailures(on_failure),
    )  # fmt: skip
    policy = NoisyOracle(config.noise, np.random.default_rng([seed, 1]))
    data: list[tuple[Prompt, torch.Tensor]] = []
    try:
        while len(data) < config.samples:
            for record in runner.step(policy):
                if record.extra is not None and record.parse != ENV_ERROR:
                    label = torch.tensor(family.encode_reply(record.extra))
                    data.append((family.encode(record.messages), label))
    finally:
        runner.close()
    return data, policy.replaced / policy.labels


def warm_start(
    engine: Engine, envs: Environments, config: WarmConfig, *, seed: int,
    max_new_tokens: int | None = None, on_failure: Callable[[Failure], object] = warn,
) -> WarmReport:  # fmt: skip
    """Train the whole model, vision tower included, on oracle turns until it reads the pictures.

    Args:
        engine: of the model; seed: of the data, the batches and the validation sampler.
        max_new_tokens: limit of the replies; default half as much again as the oracle's longest.
        on_failure: called with each failure of an environment, which is replaced.
    """
    report, steps = WarmReport(), WARM_STEPS if config.steps is None else config.steps
    if steps == 0:
        return report

    # The oracle's turns, and the reply limit that follows from them.
    start = time.perf_counter()
    family = engine.family
    data, report.labels_replaced = collect(envs, config, seed, family, on_failure)
    report.samples = len(data)
    if envs.pictured:
        report.unread_loss = measure_unread(data)
    report.longest_reply = max(len(ids) for _, ids in data)
    if max_new_tokens is None:
        engine.max_new_tokens = report.longest_reply + max(4, report.longest_reply // 2)
    elif report.longest_reply > max_new_tokens:
        raise UserError(
            f"The oracle's replies have up to {report.longest_reply} tokens; "
            f"--max-new-tokens {max_new_tokens} would cut them off."
        )
    report.max_new_tokens = engine.max_new_tokens

    # Without pictures the vision tower has no gradient.
    frozen = set() if envs.pictured else {*family.vision_parameters()}
    parameters = [each for each in family.model.parameters() if each not in frozen]
    adam: dict[str, Any] = {"betas": (0.9, 0.95), "weight_decay": 0.0, "foreach": True}
    optimizer = torch.optim.AdamW(parameters, lr=config.lr, **adam)
    order = torch.Generator().manual_seed(seed)
    rows = config.batch if isinstance(family, TinyQwen2VL) else LARGE_PASS
    losses: list[float] = []
    pace = Pace()

    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = config.lr * min(1.0, step / 50)
        chosen = torch.randint(len(data), (config.batch,), generator=order)
        batch = [data[i] for i in chosen.tolist()]
        optimizer.zero_grad(set_to_none=True)
        with memory_advice("take a smaller --warm.batch or fewer --image-tokens."):
            losses.append(add_gradients(engine, batch, rows))
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        if line := pace.add(sum(len(prompt) + len(reply) for prompt, reply in batch)):
            print(f"  step {step:4d}  {line}", flush=True)
        report.steps = step

        # Validation ends the training: a loss does not tell if the pictures are read.
        if step % config.check_every == 0 or step == steps:
            report.loss, losses = float(np.mean(losses)), []
            success, invalid, report.reading = validate(engine, envs, config.val_episodes, seed, on_failure)
            report.success.append((step, success))
            unread = "" if math.isnan(report.unread_loss) else f" (unread {report.unread_loss:.3f})"
            line = f"  step {step:4d}  loss {report.loss:.3f}{unread}  reads {report.reading:.2f}"
            print(f"{line}  success {success:.2f}  invalid {invalid:.2f}", flush=True)
            if report.reading >= config.reading:
                break
    optimizer.zero_grad(set_to_none=True)
    report.seconds = time.perf_counter() - start
    return report


def add_gradients(engine: Engine, batch: Sequence[tuple[Prompt, torch.Tensor]], rows: int) -> float:
    """Add the gradients of the mean loss per reply token, `rows` turns a pass; return that."""
    total, count = 0.0, sum(len(reply) for _, reply in batch)
    for start in range(0, len(batch), rows):
        part = batch[start : start + rows]
        ids, mask = pad_rows([reply for _, reply in part], engine.family.pad_id)
        ids, mask = ids.to(engine.family.device), mask.to(engine.family.device)
        logp = engine.score([prompt for prompt, _ in part], ids, mask, train_vision=True)
        loss = -logp.sum() / count
        loss.backward()
        total += float(loss.detach())
    return total


def share_warm_start(report: WarmReport, engine: Engine, world: World) -> WarmReport:
    """Give every process the weights, the reply limit and the report of the first one."""
    shared = WarmReport(**distributed.first_says(asdict(report), world))
    distributed.take_over(engine.family.model.parameters(), world)
    engine.max_new_tokens = shared.max_new_tokens
    return shared


def validate(
    engine: Engine, envs: Environments, episodes: int, seed: int, on_failure: Callable[[Failure], object] = warn
) -> tuple[float, float, float]:
    """Play validation episodes; return mean success, invalid rate and reading."""
    generator, each = torch.Generator().manual_seed(seed), max(1, episodes // len(envs.ids))
    scores = []
    for env_id in envs.ids:
        policy = Reader(ModelPolicy(engine, generator))
        report = evaluate(
            env_id, policy, episodes=each, split="val", num_envs=32, builder=envs.builder, group=envs.group,
            env_kwargs=envs.held_out(env_id), on_failure=on_failure, pictures=envs.pictures,
        )  # fmt: skip
        scores.append((report.success, report.invalid_rate, policy.read / policy.compared))
    success, invalid, reading = np.mean(scores, axis=0).tolist()
    return success, invalid, reading


def measure_unread(data: Sequence[tuple[Prompt, torch.Tensor]]) -> float:
    """Loss per token of a blind model that knows how often each reply follows each text."""
    replies: dict[bytes, Counter[bytes]] = {}
    for prompt, ids in data:
        replies.setdefault(prompt.ids.numpy().tobytes(), Counter())[ids.numpy().tobytes()] += 1
    nats = 0.0
    for counts in replies.values():
        nats -= sum(n * math.log(n / counts.total()) for n in counts.values())
    return nats / sum(len(ids) for _, ids in data)

"""Environments of a run as one process plays them, and rollouts for the learners.

`Collector` plays a fixed number of steps of every environment, for learners with a critic;
`GroupCollector` plays whole episodes, several from each start, for learners that compare returns.

Training sees shaped rewards (`RewardOptions`); evaluations never do. In most environments an
unreadable reply costs a turn; where a wrong action costs more, a model would learn to write it.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vlgym.env.prompts import PromptBuilder, shows_picture
from vlgym.env.reset_options import LEVEL
from vlgym.env_groups import EnvGroup, open_group
from vlgym.errors import UserError, check_options
from vlgym.parsers import Parser
from vlgym.play.controls import SHOWN
from vlgym.play.curriculum import Course, Place
from vlgym.play.env_failures import ENV_ERROR, EnvFailures, Failure, close_env
from vlgym.play.policies import RandomPolicy
from vlgym.play.rollout import Runner
from vlgym.registry import get_registry
from vlgym.registry.making import unwrap
from vlgym.types import Message, StepRecord

from ..engine.engine import ModelPolicy
from ..models.family import Prompt
from ..models.folders import read_limits
from ..models.load import BUILT
from ..runs.distributed import ALONE, World, share_of
from ..runs.logs import LEVEL_MEAN, PLAYED
from .batch import Batch, lay_out
from .recording import EpisodeRecorder

# ---- environments --------------------------------------------------------------------------------

# Most tokens per image of the models built here, by family or environment; 64 elsewhere.
FAMILY_IMAGE_TOKENS = {"NumberLine": 16, "miniworld": 16, "sight": 16, "cards": 36, "sokoban": 49}


class Environments:
    """The environments of a run, with their arguments and prompt layout.

    Args:
        ids: environment ids, mixed evenly; total: environments of all processes of `world`.
        group: size of the groups into which a process's environments are split evenly.
        where, curriculum, pictures: `--envs`, `--curriculum`, `--pictures`; seed: of its choices.
        timeout: seconds that a worker has for an answer.
    """

    def __init__(
        self, ids: Sequence[str], kwargs: Mapping[str, Any], total: int, *, builder: PromptBuilder | None = None,
        group: int = 1, where: str = "local", timeout: float = 120.0, world: World = ALONE,
        curriculum: str | None = None, seed: int = 0, pictures: str = SHOWN,
    ) -> None:  # fmt: skip
        self.ids, self.kwargs, self.builder, self.world = list(ids), dict(kwargs), builder, world
        self.pictures = pictures
        self.failures: list[Failure] = []  # in this process, not written down yet
        if curriculum is not None and LEVEL in kwargs:
            raise UserError("--curriculum chooses the level, and so does --env-kwargs level=...; leave one out.")
        self.course = None if curriculum is None else Course(curriculum, self.ids, seed=seed)
        self._aside: dict[tuple[int, str], Any] = {}  # of slots that play another id now
        self.total, self.count = total, share_of(total, world.size)  # of all, and of this process
        self.first = world.rank * self.count  # number of this process's first one
        share_of(self.count, group, "--num-envs of a process:", "groups of --group")
        self.group: EnvGroup = open_group(where, envs=self.count, limit=timeout, tell=partial(print, flush=True))

    def make(self, index: int, env_id: str | None = None) -> Any:
        """Make environment `index` of this process; without an id, ids take turns."""
        own = self.ids[(self.first + index) % len(self.ids)]
        return self.group.make(env_id or own, **self.kwargs)

    @property
    def pictured(self) -> bool:
        """True if the prompts show pictures."""
        return shows_picture(self.kwargs)

    def exchange(self, index: int, env: Any, env_id: str) -> Any:
        """Put environment `index` aside, and return that of another id in its place."""
        spec = unwrap(env).vlgym_spec
        assert spec is not None
        self._aside[index, spec.id] = env
        return self._aside.pop((index, env_id), None) or self.make(index, env_id)

    def held_out(self, env_id: str) -> dict[str, Any]:
        """Arguments of the environment in held-out episodes."""
        return self.kwargs if self.course is None else self.course.held_out(env_id, self.kwargs)

    def parsers(self) -> tuple[Parser, ...]:
        """The parsers of the replies, each once."""
        parsers: dict[tuple[str, int, type], Parser] = {}
        for env_id in self.ids:
            env = self.make(0, env_id)
            parsers.setdefault((env.parser.name, env.parser.version, type(env.parser)), env.parser)
            env.close()
        return tuple(parsers.values())

    def make_runner(self) -> Runner:
        """Endless training episodes."""
        return Runner(
            [self.make(i) for i in range(self.count)], split="train", builder=self.builder,
            remake=self.make, failures=EnvFailures(self.failures.append), first_episode=self.first,
            stride=self.total, course=self.course, exchange=self.exchange, pictures=self.pictures,
        )  # fmt: skip

    def longest_prompt(self, encode: Callable[[Sequence[Message]], Prompt], words: int, turns: int = 16) -> Prompt:
        """The longest prompt of a random episode of each environment, after `words` words."""
        prompts, policy = list[Prompt](), RandomPolicy()
        for index, env_id in enumerate(self.ids):
            runner = Runner([self.make(index, env_id)], split="val", builder=self.builder, episodes=1)
            for _ in range(turns):
                waiting = runner.turns()
                prompts += [encode(turn.messages) for turn in waiting]
                replies = [replace(r, text="a " * words + r.text) for r in policy.reply(waiting)]
                runner.advance(waiting, replies)
            runner.close()
        return max(prompts, key=len)

    def close(self) -> None:
        """Close what a curriculum put aside, and end the workers."""
        while self._aside:
            close_env(self._aside.popitem()[1])
        self.group.close()


def count_image_tokens(model: str, env_ids: Sequence[str]) -> int | None:
    """Default of `--image-tokens`; None: as many as the model's processor allows."""
    if model not in BUILT:
        return read_limits(model).image_tokens
    specs = [get_registry().get(env_id) for env_id in env_ids]
    known = FAMILY_IMAGE_TOKENS
    return max(known.get(spec.title, known.get(spec.family, 64)) for spec in specs)


# ---- rollouts ------------------------------------------------------------------------------------

NGRAM, REPEATS = 4, 3  # the same 4 words in a row, 3 times, are a repetition


@dataclass(frozen=True)
class RewardOptions:
    """Reward shaping; by default only the penalty for unreadable replies."""

    unreadable_penalty: float = 0.5
    """Subtracted in training where no legal action was read, in addition to --invalid-penalty."""
    scale: float = 1.0
    """Factor on the environment's reward."""
    repetition_penalty: float = 0.0
    """Subtracted when a reply has the same 4 words in a row 3 times outside the action (MageBench,
    fig. 6, "+rep": 0.2; what counts as repetition is ours)."""
    length_bonus: float = 0.0
    """Added per token of replies below --reward.length-limit (MageBench, "+enc": 0.001)."""
    length_limit: int = 200
    """Tokens from which on a reply gets no length bonus (MageBench: 200)."""

    def validate(self) -> None:
        """Raise `UserError` for a value out of its range."""
        check_options(self, "scale", group="reward.", above=0)
        penalties = ("unreadable_penalty", "repetition_penalty", "length_bonus")
        check_options(self, *penalties, group="reward.", least=0)
        check_options(self, "length_limit", group="reward.", least=1)

    def shape(self, record: StepRecord) -> float:
        """The reward of a step that a `ModelPolicy` answered."""
        reward, length = record.reward * self.scale, len(record.extra.ids)
        if record.invalid:
            reward -= self.unreadable_penalty
        if self.repetition_penalty and repeats_itself(record):
            reward -= self.repetition_penalty
        if self.length_bonus and length < self.length_limit:
            reward += self.length_bonus * length
        return reward


def repeats_itself(record: StepRecord) -> bool:
    """True if a reply without its action has the same `NGRAM` words in a row `REPEATS` times."""
    text = record.reply
    if record.span is not None:
        text = text[: record.span[0]] + " " + text[record.span[1] :]
    words = text.split()
    counts = Counter(tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1))
    return max(counts.values(), default=0) >= REPEATS


Rows = Sequence[Sequence[StepRecord]]  # records of a rollout, [T][N]: steps in time, environments


class Followed:
    """Rollouts that a curriculum learns from and a recorder sees."""

    policy: ModelPolicy  # being trained
    shaping: RewardOptions | None = None
    recorder: EpisodeRecorder | None = None  # sees every record
    course: Course | None = None  # the curriculum at work
    places: Sequence[Place] = ()  # of the turns of the last rollout, in the order of its batch

    def make_batch(
        self, records: Sequence[StepRecord], ended: Sequence[tuple[bool, float]], seconds: float | None = None
    ) -> tuple[Batch, dict[str, float]]:
        """Lay out a rollout's records, and return the metrics that every rollout logs. `ended` has
        (success, return) of each ended episode; `seconds` were spent in environments."""
        samples, spans = [record.extra for record in records], [record.span for record in records]
        batch = lay_out(samples, spans, self.policy.engine.family.pad_id)
        success, total = np.mean(ended, axis=0).tolist() if ended else (math.nan, math.nan)
        metrics = {
            "episode/success": success,
            "episode/return": total,
            "episode/count": float(len(ended)),
            "rollout/reward": float(np.mean([record.reward for record in records])),
            "rollout/invalid_rate": float(np.mean([record.invalid for record in records])),
            "rollout/reply_tokens": float(batch.mask.sum(-1).float().mean()),
            "rollout/cut_rate": float(np.mean([sample.cut for sample in samples])),
            "rollout/entropy": -float(batch.old.sum() / batch.mask.sum()),
        }
        metrics |= {} if seconds is None else {"seconds/env": seconds}
        return batch, metrics | self.follow(records)

    def follow(self, records: Sequence[StepRecord]) -> dict[str, float]:
        """Tell the curriculum which episodes ended; return turns by place, and mean level."""
        if self.course is None:
            return {}
        self.places = [Place(record.env_id, record.level) for record in records]
        for record, place in zip(records, self.places, strict=True):
            if (record.terminated or record.truncated) and record.parse != ENV_ERROR:
                self.course.note(place, record.success)
        levels = [place.level for place in self.places if place.level is not None]
        metrics = {LEVEL_MEAN: float(np.mean(levels)) if levels else math.nan}
        for place in self.course.places:
            where = place.env_id.split("/")[-1] + ("" if place.level is None else f"/{place.level}")
            metrics[f"{PLAYED}{where}"] = float(self.places.count(place))
        return metrics

    def note_errors(self, errors: Tensor) -> None:
        """Tell the curriculum the advantages, or errors of the critic, of the last turns."""
        if self.course is not None:
            self.course.note_errors(list(zip(self.places, errors.flatten().tolist(), strict=True)))

    def rewards(self, rows: Rows) -> list[list[float]]:
        """Rewards as training sees them, [T][N]."""
        shaping = self.shaping
        if shaping is None:
            return [[record.reward for record in row] for row in rows]
        return [[shaping.shape(record) for record in row] for row in rows]

    def values_after(self, rows: Rows, value: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        """The values with which advantages bootstrap; `value` takes [B, H] states to [B].

        Returns:
            (values [N] of the observations that wait for a reply; values [T, N] of the final ones
            of truncated episodes, 0 elsewhere).
        """
        family = self.policy.engine.family
        places = ((t, n, r) for t, row in enumerate(rows) for n, r in enumerate(row))
        cut = [(t, n) for t, n, r in places if r.truncated and not r.terminated]
        prompts = [family.encode(rows[t][n].final_messages or []) for t, n in cut]
        prompts += self._next_prompts()
        none = torch.zeros(0, device=family.device)
        values = value(self.policy.engine.last_hidden(prompts)) if prompts else none
        final = values.new_zeros(len(rows), len(rows[0]))
        for (t, n), v in zip(cut, values, strict=False):
            final[t, n] = v
        return values[len(cut) :], final

    def _next_prompts(self) -> list[Prompt]:
        return []

    def recall(self) -> dict[str, Any]:
        """The curriculum's part of a state."""
        return {} if self.course is None else {"curriculum": self.course.sampler.memory}

    def remember(self, state: dict[str, Any]) -> None:
        """Restore `recall`."""
        if self.course is not None:
            self.course.sampler.memory = state["curriculum"]


class Collector(Followed):
    """Plays steps of every environment; environments go on where they stood."""

    def __init__(self, runner: Runner, policy: ModelPolicy, shaping: RewardOptions | None = None) -> None:
        self.runner, self.policy, self.shaping = runner, policy, shaping
        self.env_seconds = 0.0  # of the last rollout
        self.open_returns = [0.0] * len(runner.slots)
        self.course = runner.course

    def play(self, steps: int) -> Rows:
        """Take `steps` time steps; one row of records per time step, environments in order."""
        before = self.runner.seconds
        rows = [self.runner.step(self.policy) for _ in range(steps)]
        self.env_seconds = self.runner.seconds - before
        if self.recorder is not None:
            for row in rows:
                self.recorder.see(enumerate(row))
        return rows

    def pack(self, rows: Rows) -> tuple[Batch, dict[str, float]]:
        """The last rollout as a batch, row by row, and its metrics. Call it once per rollout."""
        ended: list[tuple[bool, float]] = []
        for row in rows:
            for n, record in enumerate(row):
                self.open_returns[n] += record.reward
                if record.terminated or record.truncated:
                    ended.append((record.success, self.open_returns[n]))
                    self.open_returns[n] = 0.0
        return self.make_batch([record for row in rows for record in row], ended, self.env_seconds)

    def following(self, rows: Rows) -> list[list[Prompt | None]]:
        """The prompt after each step, [T][N]: the next or the final one; None after termination."""
        encode = self.policy.engine.family.encode
        answered = [[record.extra.prompt for record in row] for row in rows[1:]]
        return [
            [
                None if r.terminated else encode(r.final_messages or []) if r.truncated else coming[n]
                for n, r in enumerate(row)
            ]
            for row, coming in zip(rows, [*answered, self._next_prompts()], strict=True)
        ]

    def _next_prompts(self) -> list[Prompt]:
        encode = self.policy.engine.family.encode
        return [encode(turn.messages) for turn in self.runner.turns()]

    def get_state(self) -> dict[str, Any]:
        """JSON-able state of the environments and of the open episodes' returns."""
        return {"runner": self.runner.get_state(), "open_returns": self.open_returns, **self.recall()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore `get_state`."""
        self.runner.set_state(state["runner"])
        self.open_returns = list(state["open_returns"])
        self.remember(state)

    def close(self) -> None:
        """Close every environment."""
        self.runner.close()


class GroupCollector(Followed):
    """Plays a whole episode in every environment; `group` consecutive ones begin alike."""

    def __init__(
        self, envs: Environments, policy: ModelPolicy, group: int, shaping: RewardOptions | None = None
    ) -> None:
        self.run_envs, self.policy, self.group, self.shaping = envs, policy, group, shaping
        self.course = envs.course
        self.envs = [self._make(index) for index in range(envs.count)]
        self.next = 0  # number of the first episode of the next rollout, over all processes
        self.failures = EnvFailures(envs.failures.append)  # of all rollouts

    def _make(self, index: int, env_id: str | None = None) -> Any:
        first = self.run_envs.first
        return self.run_envs.make((first + index) // self.group - first, env_id)

    def play(self, gamma: float) -> tuple[Batch, Tensor, dict[str, float]]:
        """Play one episode in every environment.

        Returns:
            (batch by episode; discounted returns [G, K] as training sees them; metrics).
        """
        envs, n = self.run_envs, self.run_envs.count
        runner = Runner(
            self.envs[:n], split="train", builder=envs.builder, first_episode=self.next + envs.first,
            episodes=n, repeats=self.group, remake=self._make, failures=self.failures, course=self.course,
            exchange=envs.exchange, pictures=envs.pictures, twins=self.envs[n:],
        )  # fmt: skip
        self.next += envs.total
        episodes: list[list[StepRecord]] = [[] for _ in range(n)]
        returns = [0.0] * n
        try:
            while not runner.done:
                active = [slot.index for slot in runner.slots if slot.active]
                row = runner.step(self.policy)
                if self.recorder is not None:
                    self.recorder.see(zip(active, row, strict=True))
                for slot, record in zip(active, row, strict=True):
                    reward = record.reward if self.shaping is None else self.shaping.shape(record)
                    returns[slot] += gamma ** len(episodes[slot]) * reward
                    episodes[slot].append(record)
        finally:
            self.envs = runner.envs()  # some may be new ones

        # Minibatches count episodes, so each is one unit of the batch.
        records = [record for episode in episodes for record in episode]
        ended = [(episode[-1].success, sum(r.reward for r in episode)) for episode in episodes]
        batch, metrics = self.make_batch(records, ended, runner.seconds)
        ends = np.cumsum([len(episode) for episode in episodes]).tolist()
        batch.units = [list(range(end - len(e), end)) for end, e in zip(ends, episodes, strict=True)]
        return batch, torch.tensor(returns, device=batch.old.device).view(-1, self.group), metrics

    def get_state(self) -> dict[str, Any]:
        """JSON-able state; between rollouts no episode is open."""
        return {"next": self.next, **self.recall()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore `get_state`."""
        self.next = state["next"]
        self.remember(state)

    def close(self) -> None:
        """Close every environment."""
        for env in self.envs:
            close_env(env)

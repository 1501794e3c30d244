"""Shared parts of the checks: the environment under test, the result of one check, and its failure."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..env import VLEnv
from ..env.spec import EnvSpec
from ..evaluation import Report, summarize, without_images
from ..play.policies import Policy
from ..play.rollout import Runner, run_episodes
from ..registry.making import build
from ..types import StepRecord
from .fingerprint import Behaviour, measure_behaviour
from .playing import (
    Deadline,
    StepResult,
    choose_idle,
    choose_legal,
    choose_oracle,
    first_difference,
    play_episode,
    seeds_of,
)

TURN_BUDGET = {"val": 500, "test": 300}
"""Turns, about, that a policy plays on a split for the checks: `TURN_BUDGET / max_turns` episodes, at least
`FEWEST_EPISODES` and at most `MOST_SAMPLED`."""

FEWEST_EPISODES, MOST_SAMPLED = {"val": 4, "test": 2}, {"val": 30, "test": 20}

MOST_SLOW = 10
"""At most so many where the card has `figure_episodes`, which says that an episode is slow."""

STARTS = 12
"""Episodes of the sample that begin with other seeds."""

SAMPLE_TURNS = 24
"""Most turns of an episode of the sample."""

SAMPLE_SECONDS = 3.0
"""Time limit of the sample, which ends with its current episode; the `STARTS` starts are always played."""


class CheckFailure(AssertionError):
    """A property does not hold; the message is the evidence."""


class CheckWarning(Exception):
    """A property that need not hold does not; the message is the evidence."""


@dataclass(frozen=True)
class CheckResult:
    """One line of a certificate: name of the property, whether it holds, the evidence, and whether that is a warning
    about a property that need not hold."""

    name: str
    passed: bool
    evidence: str
    warning: bool = False


@dataclass
class Subject:
    """The environment under test.

    Attributes:
        so_far: the fingerprint after each episode of `behaviour`.
        variables: of the process, before the environment was made.
    """

    spec: EnvSpec
    kwargs: dict[str, Any] = field(default_factory=dict)
    garbage: int = 300
    _episodes: dict[tuple[str, str], list[list[StepRecord]]] = field(default_factory=dict)
    so_far: list[str] = field(default_factory=list)
    _behaviour: Behaviour | None = None
    _sample: list[list[StepResult]] | None = None
    variables: dict[str, str] = field(default_factory=lambda: dict(os.environ), init=False)

    def make(self, **kwargs: Any) -> VLEnv:
        return build(self.spec, **{**self.kwargs, **kwargs})

    def play(self, policy: Policy, split: str = "val") -> Report:
        """Play the policy on the val or the test split (once; later calls reuse it)."""
        key = (policy.name, split)
        if key not in self._episodes:
            most = MOST_SLOW if self.spec.figure_episodes else MOST_SAMPLED[split]
            episodes = max(FEWEST_EPISODES[split], min(most, TURN_BUDGET[split] // self.spec.max_turns))
            self._episodes[key] = self.run(policy, split, episodes)
        return summarize(self.spec.id, policy.name, split, self._episodes[key])

    def run(
        self, policy: Policy, split: str, most: int, fewest: int = 1, seconds: float = math.inf
    ) -> list[list[StepRecord]]:
        """Play up to `most` episodes, fewer where the time is up; return their records, without prompts and images."""
        deadline = Deadline(seconds)
        finished: list[list[StepRecord]] = []
        runner = Runner([self.make()], split=split, episodes=most)
        try:
            for episode in run_episodes(runner, policy):
                finished.append([without_images(record) for record in episode])
                if deadline.over and len(finished) >= fewest:
                    break
        finally:
            runner.close()
        return finished

    def splits(self) -> list[str]:
        """The splits that policies are judged on: val and test, where the environment has them."""
        return [split for split in TURN_BUDGET if split in self.spec.splits]

    def behaviour(self) -> Behaviour:
        """Fingerprint and pictures (measured once; later calls reuse them)."""
        if self._behaviour is None:
            self._behaviour = measure_behaviour(self.make, self.spec, variants=not self.kwargs, so_far=self.so_far)
        return self._behaviour

    def records(self) -> list[StepRecord]:
        """All turns played by policies so far, without prompts and images."""
        return [record for episodes in self._episodes.values() for episode in episodes for record in episode]

    def sample(self) -> list[list[StepResult]]:
        """Return episodes of the train split, played once.

        Every fourth is the oracle's, one has no readable reply, and the others are random legal actions with some
        unreadable replies. The oracle is asked at every start, and all the way in its own episodes.
        """
        if self._sample is None:
            env = self.make()
            deadline = Deadline(SAMPLE_SECONDS)
            turns = min(SAMPLE_TURNS, self.spec.max_turns)
            episodes: list[list[StepResult]] = []
            for index, seed in enumerate(seeds_of(self.spec.id, "train", STARTS)):
                choose = choose_oracle if index % 4 == 1 else choose_legal(index, garbage_every=5)
                choose = choose_idle if index == 2 else choose
                always = index % 4 == 1 or self.spec.max_turns <= 50
                long = 0 if deadline.over and index > 2 else turns
                episodes.append(play_episode(env, seed, choose, long, ask=always))
            env.close()
            self._sample = episodes
        return self._sample


def require_repeat(episode: Sequence[StepResult], env: VLEnv, seed: int, message: str, **options: Any) -> None:
    """Raise `CheckFailure` unless an environment plays an episode again as it was; the options are `play_episode`'s."""
    replies = [step.reply for step in episode[1:]]
    again = play_episode(env, seed, lambda env, turn: replies[turn], len(replies), **options)
    difference = first_difference(episode, again)
    require(difference is None, f"{message}: {difference}")


def require(condition: Any, message: str) -> None:
    """Raise `CheckFailure` with `message` as the evidence, unless `condition` holds."""
    if not condition:
        raise CheckFailure(message)

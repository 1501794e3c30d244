"""Shared parts of the checks: the environment under test, a check's result, and its failure."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..env import VLEnv
from ..env.seeding import episode_seed
from ..env.spec import EnvSpec
from ..evaluation import Report, summarize, without_images
from ..play.policies import Policy
from ..play.rollout import Runner, run_episodes
from ..registry.making import build
from ..types import StepRecord
from .fingerprint import Behaviour, measure_behaviour
from .playing import Deadline, StepResult, choose_idle, choose_legal, choose_oracle, first_difference, play_episode

# About as many turns of a split as a policy plays for the checks, and the limits of its episodes.
TURN_BUDGET = {"val": 500, "test": 300}
FEWEST_EPISODES, MOST_SAMPLED = {"val": 4, "test": 2}, {"val": 30, "test": 20}
MOST_SLOW = 10  # at most, where the card has `figure_episodes`: an episode is slow

STARTS = 12  # episodes of the sample, each of another seed; their starts are always played
SAMPLE_TURNS = 24  # most turns of an episode of the sample
SAMPLE_SECONDS = 3.0  # limit of the sample, which ends with its current episode


class CheckFailure(AssertionError):
    """A property does not hold; the message is the evidence."""


class CheckWarning(Exception):
    """A property that need not hold does not; the message is the evidence."""


@dataclass(frozen=True)
class CheckResult:
    """One line of a certificate; `warning`: the property need not hold, and does not."""

    name: str
    passed: bool
    evidence: str
    warning: bool = False


@dataclass
class Subject:
    """The environment under test; `variables` are the process's before it was made."""

    spec: EnvSpec
    kwargs: dict[str, Any] = field(default_factory=dict)
    garbage: int = 300
    _episodes: dict[tuple[str, str], list[list[StepRecord]]] = field(default_factory=dict)
    _made: list[VLEnv] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=lambda: dict(os.environ), init=False)

    def make(self, **kwargs: Any) -> VLEnv:
        """Build the environment, with arguments over the subject's."""
        self._made.append(build(self.spec, **{**self.kwargs, **kwargs}))
        return self._made[-1]

    def close(self) -> None:
        """Close the environments that a check has left open."""
        made, self._made = self._made, []
        for env in made:
            if not env._closed:
                env.close()

    def seed(self, index: int, split: str = "train") -> int:
        """Return an episode's seed."""
        return episode_seed(self.spec.id, split, index)

    def seeds(self, count: int, first: int = 0, split: str = "train") -> list[int]:
        """Return the seeds of `count` episodes of a split."""
        return [self.seed(first + index, split) for index in range(count)]

    def play(self, policy: Policy, split: str = "val") -> Report:
        """Play the policy on the val or the test split, once."""
        key = (policy.name, split)
        if key not in self._episodes:
            most = MOST_SLOW if self.spec.figure_episodes else MOST_SAMPLED[split]
            episodes = max(FEWEST_EPISODES[split], min(most, TURN_BUDGET[split] // self.spec.max_turns))
            self._episodes[key] = self.run(policy, split, episodes)
        return summarize(self.spec.id, policy.name, split, self._episodes[key])

    def run(
        self, policy: Policy, split: str, most: int, fewest: int = 1, seconds: float = math.inf
    ) -> list[list[StepRecord]]:
        """Play up to `most` episodes, at least `fewest` where the time is up; return their records.

        The records have no prompts and images.
        """
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
        """The splits that policies are judged on: val and test, where they exist."""
        return [split for split in TURN_BUDGET if split in self.spec.splits]

    @cached_property
    def behaviour(self) -> Behaviour:
        """Fingerprint and pictures."""
        return measure_behaviour(self.make, self.spec, variants=not self.kwargs)

    def records(self) -> list[StepRecord]:
        """All turns that policies have played, without prompts and images."""
        return [record for episodes in self._episodes.values() for episode in episodes for record in episode]

    @cached_property
    def sample(self) -> list[list[StepResult]]:
        """Episodes of the train split.

        Every fourth is the oracle's, one has no readable reply, and the others are random legal
        actions with some unreadable replies. Long episodes ask the oracle in its own only.
        """
        episodes: list[list[StepResult]] = []
        env, deadline = self.make(), Deadline(SAMPLE_SECONDS)
        for index, seed in enumerate(self.seeds(STARTS)):
            choose = choose_oracle if index % 4 == 1 else choose_legal(index, garbage_every=5)
            choose = choose_idle if index == 2 else choose
            always = index % 4 == 1 or self.spec.max_turns <= 50
            late = deadline.over and index > 2
            turns = 0 if late else min(SAMPLE_TURNS, self.spec.max_turns)
            episodes.append(play_episode(env, seed, choose, turns, ask=always))
        return episodes


def require_repeat(episode: Sequence[StepResult], env: VLEnv, seed: int, message: str, **options: Any) -> None:
    """Raise `CheckFailure` unless an environment repeats an episode; options of `play_episode`."""
    replies = [step.reply for step in episode[1:]]
    again = play_episode(env, seed, lambda env, turn: replies[turn], len(replies), **options)
    difference = first_difference(episode, again)
    require(difference is None, f"{message}: {difference}")


def require(condition: Any, message: str) -> None:
    """Raise `CheckFailure` with `message` as the evidence unless `condition` holds."""
    if not condition:
        raise CheckFailure(message)

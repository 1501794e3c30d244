"""What the checks have in common: the environment under test, the result of one check, and how one fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..env import VLEnv
from ..evaluation import Report, summarize, without_images
from ..making import build
from ..policies import Policy
from ..rollout import Runner, run_episodes
from ..spec import EnvSpec
from ..types import StepRecord
from .fingerprint import fingerprint

TURN_BUDGET = 1500
"""Turns that a policy plays for the checks, about: `TURN_BUDGET / max_turns` episodes, at least 5 and at most 60."""


class CheckFailure(AssertionError):
    """A property does not hold; the message is the evidence."""


@dataclass(frozen=True)
class CheckResult:
    """One line of a certificate: name of the property, whether it holds, and the evidence."""

    name: str
    passed: bool
    evidence: str


@dataclass
class Subject:
    """The environment under test.

    Attributes:
        spec: its card.
        kwargs: arguments for the constructor.
        garbage: unreadable replies to try.
    """

    spec: EnvSpec
    kwargs: dict[str, Any] = field(default_factory=dict)
    garbage: int = 300
    _episodes: dict[str, list[list[StepRecord]]] = field(default_factory=dict)
    _fingerprint: str | None = None

    def make(self, **kwargs: Any) -> VLEnv:
        """Build a fresh one."""
        return build(self.spec, **{**self.kwargs, **kwargs})

    def play(self, policy: Policy) -> Report:
        """Play the policy on the val split (once; later calls reuse it)."""
        if policy.name not in self._episodes:
            episodes = max(5, min(60, TURN_BUDGET // self.spec.max_turns))
            runner = Runner([self.make()], split="val", episodes=episodes)
            try:
                played = run_episodes(runner, policy)
                self._episodes[policy.name] = [[without_images(record) for record in episode] for episode in played]
            finally:
                runner.close()
        return summarize(self.spec.id, policy.name, "val", self._episodes[policy.name])

    def fingerprint(self) -> str:
        """The behaviour fingerprint (measured once; later calls reuse it)."""
        if self._fingerprint is None:
            env = self.make()
            self._fingerprint = fingerprint(env, self.spec.id)
            env.close()
        return self._fingerprint

    def records(self) -> list[StepRecord]:
        """All turns played so far, without prompts and images."""
        return [record for episodes in self._episodes.values() for episode in episodes for record in episode]


def require(condition: Any, message: str) -> None:
    """Raise `CheckFailure` with `message` as the evidence, unless `condition` holds."""
    if not condition:
        raise CheckFailure(message)

"""Run an evaluation: describe it, play the missing episodes, write each one as it ends."""

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..endpoint.secrets import SECRET_NAME
from ..env.prompts import PromptBuilder
from ..env_groups import LOCAL, EnvGroup
from ..errors import FailedError, UserError, check_number
from ..play.env_failures import Failure, in_words
from ..play.policies import Policy
from ..play.trajectory import METADATA, read_trajectories
from ..types import Reply, StepRecord, Usage
from .episodes import Player
from .folder import EvaluationFolder, describe_evaluation
from .plan import Part, list_jobs

NUM_ENVS = 8
MILLION = 1_000_000


class BudgetSpentError(FailedError):
    """`--max-cost` is reached. Next step: `--resume` with a higher one."""


@dataclass(frozen=True)
class Prices:
    """Dollars for a million tokens; `None` if unknown."""

    prompt: float | None = None
    completion: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("--price-in", self.prompt), ("--price-out", self.completion)):
            if value is not None:
                check_number(name, value, 0)

    def __bool__(self) -> bool:
        return self.prompt is not None or self.completion is not None

    def cost(self, usage: Usage) -> float:
        return (usage.prompt_tokens * (self.prompt or 0) + usage.completion_tokens * (self.completion or 0)) / MILLION

    def to_dict(self) -> dict[str, float] | None:
        """Return what a run's record says: `{"in", "out"}`; `None` without prices."""
        return {"in": self.prompt or 0.0, "out": self.completion or 0.0} if self else None


class Meter:
    """Adds up tokens and cost of replies."""

    def __init__(self, prices: Prices, max_cost: float | None = None) -> None:
        self.prices, self.max_cost = prices, max_cost
        self.replies = self.tokens = 0
        self.cost = 0.0

    def add(self, usage: Usage | None) -> None:
        self.replies += 1
        if usage is not None:
            self.tokens += usage.prompt_tokens + usage.completion_tokens
            self.cost += self.prices.cost(usage)

    def add_folder(self, folder: Path) -> None:
        """Count the replies that a folder holds."""
        if (folder / METADATA).exists():
            for episode in read_trajectories(folder, images=False):
                for record in episode:
                    self.add(record.usage)

    def check(self) -> None:
        if self.max_cost is not None and self.cost >= self.max_cost:
            raise BudgetSpentError(f"${self.cost:.4f} are spent, --max-cost is ${self.max_cost:g}.")


class Watcher:
    """Receives the progress of an evaluation; this one ignores it."""

    def begin(self, parts: Sequence[Part], meter: Meter, already: set[tuple[str, int]]) -> None:
        """Called when the run has a folder and begins to play."""

    def reply(self, reply: Reply, key: str) -> None:
        """Called after a reply in a part."""

    def finish(self, episode: list[StepRecord]) -> None:
        """Called after an episode."""

    def say(self, line: str) -> None:
        """Called with a message for the user."""

    def end(self) -> None:
        """Called last."""


def run_evaluation(
    parts: Sequence[Part], policy: Policy, out: Path, *, num_envs: int | None = None,
    layout: PromptBuilder | Mapping[str, PromptBuilder] | None = None,
    prices: Prices | None = None, max_cost: float | None = None, resume: bool = False,
    watcher: Watcher | None = None, noted: Mapping[str, Any] | None = None,
    again: str = "Go on with --resume.", group: EnvGroup = LOCAL, **more: Any,
) -> None:  # fmt: skip
    """Play a plan into a folder; finished episodes are on disk however it stops.

    Args:
        policy: the caller closes it.
        layout: prompt layout, of all parts or by their keys; by default each environment's own.
        num_envs: most episodes at once; by default the policy's attribute `concurrency`, else 8.
        noted: extra fields of the session's record; `resume` does not compare them.
        again: how to go on, said when the run stops before its end.
        group: where the environments live; the caller closes it.
        **more: extra fields of the run's record; a resumed run must have the same values.

    Raises:
        UserError: an environment cannot be made, or as `EvaluationFolder`.
        BudgetSpentError: `max_cost` is reached.
        FailedError: an environment, or the policy, failed again and again.
    """
    prices, watcher = prices or Prices(), watcher or Watcher()
    builders = {part.key: layout for part in parts} if isinstance(layout, PromptBuilder) else dict(layout or {})
    run = describe_evaluation(parts, policy, builders=builders, prices=prices.to_dict(), group=group, **more)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    hide = getattr(policy, "hide", str)
    command = write_command(map(hide, [Path(sys.argv[0]).name, *sys.argv[1:]]), os.environ)
    session = {"command": command, "started": started, **(noted or {})}
    if hasattr(policy, "describe_session"):
        session |= policy.describe_session()
    with EvaluationFolder(out, run, session=session, resume=resume) as folder:
        meter = Meter(prices, max_cost)
        meter.add_folder(out)
        meter.check()
        watcher.begin(parts, meter, set(folder.finished))

        def count(reply: Reply, key: str) -> None:
            meter.add(reply.usage)
            watcher.reply(reply, key)
            meter.check()

        def finish(episode: list[StepRecord]) -> None:
            folder.write(episode)
            watcher.finish(episode)

        def note(failure: Failure) -> None:
            folder.note(failure)
            watcher.say(in_words(failure))

        player = Player(
            list_jobs(parts, folder.finished), policy, builders=builders, group=group,
            on_episode=finish, on_reply=count, on_failure=note,
            num_envs=num_envs or int(getattr(policy, "concurrency", NUM_ENVS)),
        )  # fmt: skip
        try:
            player.play()
        except UserError as error:
            raise type(error)(f"{error} {_describe_kept(folder, parts)} {again}") from error
        except KeyboardInterrupt:
            watcher.end()
            watcher.say(f"{_describe_kept(folder, parts)} {again}")
            raise
        finally:
            watcher.end()


_WITHOUT = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), new)
    for pattern, new in (
        (r"://.*@", "://"),
        (r"^[^\s/@:]+:[^\s/@]+@(?!https?://)", ""),
        (r"(://[^?#]*)[?#].*", r"\1"),
        (rf"""({SECRET_NAME}["']?\s*[:=]).*""", r"\1[secret]"),
        (r"\b(bearer|basic)\s.*", r"\1 [secret]"),
        (r"\b(?:sk|pk|rk|hf|gsk|gh\w|xox\w|glpat|github_pat|AKIA|AIza|eyJ)[-_]?[-\w.]{16,}", "[secret]"),
    )
)


def write_command(words: Iterable[str], environment: Mapping[str, str]) -> str:
    """Return a command line for records, without keys and passwords.

    They are known by place, name or form, and as values of environment variables with such names.
    """
    secret = re.compile(rf"{SECRET_NAME}(?:_|$)", re.IGNORECASE)
    option = re.compile(r"--?\S*(?:key|token|secret|passw|pwd|credential)\S*(?<!-env)", re.IGNORECASE)
    values = [each for name, each in environment.items() if len(each) >= 8 and secret.search(name)]

    # The place comes first: behind `--api-key` any word is a secret.
    written: list[str] = []
    for word in words:
        is_named = written and option.fullmatch(written[-1])
        if is_named and not re.fullmatch(r"\d{1,7}", word):  # a limit of tokens is no secret
            word = "[secret]"
        for each in sorted(values, key=len, reverse=True):
            word = word.replace(each, "[secret]")
        for pattern, new in _WITHOUT:
            word = pattern.sub(new, word)
        written.append(word)
    return shlex.join(written)


def _describe_kept(folder: EvaluationFolder, parts: Sequence[Part]) -> str:
    planned = sum(part.total for part in parts)
    return f"{len(folder.finished)} of {planned} episodes are kept in {folder.folder}."

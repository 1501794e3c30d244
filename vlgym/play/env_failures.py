"""The rule for an environment that raises in play: the same in training, evaluation, floors and resuming.

Its failure is noted, the environment is closed and a new one takes its place; three failures in a row, without a
finished episode between them, end the run. The caller decides on the episode: training counts it
as truncated, everything else plays it again. An evaluation treats an `EndpointError` of the policy alike. A `UserError`
is no failure of the environment, nor is what else a policy raises; they end the run at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from typing import Any

from ..errors import EndpointError, FailedError, UserError, plain_line

FAILURES_IN_A_ROW = 3
ENV_ERROR = "env_error"
"""`StepRecord.parse` of a turn in which the environment raised."""

Failure = dict[str, Any]
"""JSON-able: `env_id` (or the part of an evaluation), `episode`, `seed`, `turn`, `reply` (`None` where it was no step),
`error` (one line)."""


class EnvFailures:
    """Notes failures and counts them.

    Args:
        tell: called with each failure at once; by default they are kept in `noted`.

    Attributes:
        noted: failures so far that were not reported.
    """

    def __init__(self, tell: Callable[[Failure], object] | None = None) -> None:
        self.noted: list[Failure] = []
        self.tell = tell or self.noted.append
        self._in_a_row: dict[Hashable, int] = {}

    def note(
        self, place: Hashable, error: Exception, env: Any, *, env_id: str, episode: int, seed: int, turn: int = 0,
        reply: str | None = None, part: str = "",
    ) -> None:  # fmt: skip
        """Close an environment that raised and note why.

        Args:
            place: where failures are in a row: an environment of several, or an episode.
            reply: what it was to do, `None` where it was no step.
            part: of the evaluation, noted instead of the id.

        Raises:
            UserError: that is what it raised.
            FailedError: it is the third failure in a row.
        """
        close_error = "" if env is None else close_env(env)
        served = isinstance(error, EndpointError)
        if isinstance(error, UserError) and not served:
            raise error
        line = plain_line(f"{type(error).__name__}: {error}")
        count = self._in_a_row[place] = self._in_a_row.get(place, 0) + 1
        failure = {"env_id": part or env_id, "episode": episode, "seed": seed, "turn": turn, "reply": reply}
        self.tell({**failure, "error": f"{line}; close: {close_error}" if close_error else line})
        if count >= FAILURES_IN_A_ROW:
            if served:
                raise error
            raise FailedError(
                f"{part or env_id} failed {count} times in a row, last with {line} in episode {episode} (seed {seed}). "
                f"Play it alone: vlgym play {env_id} --seed {seed}"
            ) from error

    def end_row(self, place: Hashable) -> None:
        """Note that an episode ended there, which ends the row of failures."""
        self._in_a_row.pop(place, None)


def close_env(env: Any) -> str:
    """Close an environment; return what it raised, as one line: a broken one may not even close."""
    try:
        env.close()
    except Exception as error:
        return plain_line(f"{type(error).__name__}: {error}")
    return ""


def warn(failure: Failure) -> None:
    """Report a failure that no caller reports."""
    warnings.warn(in_words(failure), RuntimeWarning, stacklevel=3)


def in_words(failure: Failure) -> str:
    """A failure as one line."""
    where = f"{failure['env_id']}, episode {failure['episode']} (seed {failure['seed']}), turn {failure['turn']}"
    served = failure["error"].startswith(EndpointError.__name__)
    who = "the endpoint failed" if served else "the environment failed and was replaced"
    return f"{where}: {who}: {failure['error']}"

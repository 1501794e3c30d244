"""The rule for an environment that raises: the same in training, evaluation, floors and resuming.

Its failure is noted, the environment is closed and a new one takes its place; three failures in a
row, without a finished episode between them, end the run. Training counts the episode as truncated,
everything else plays it again. An evaluation treats an `EndpointError` of the policy alike. A
`UserError`, and any other error of a policy, ends the run at once.
"""

import warnings
from collections.abc import Callable, Hashable
from typing import Any

from ..errors import EndpointError, FailedError, UserError, plain_line

FAILURES_IN_A_ROW = 3
ENV_ERROR = "env_error"  # `StepRecord.parse` of a turn in which the environment raised
# JSON-able: `env_id` (or an evaluation's part), `episode`, `seed`, `turn`, `reply`, `error`.
Failure = dict[str, Any]


class EnvFailures:
    """Counts failures, and tells each at once to `tell`; by default `noted` keeps them."""

    def __init__(self, tell: Callable[[Failure], object] | None = None) -> None:
        self.noted: list[Failure] = []
        self.tell = tell or self.noted.append
        self._in_a_row: dict[Hashable, int] = {}

    def note(
        self, place: Hashable, error: Exception, env: Any, *, env_id: str, episode: int, seed: int,
        turn: int = 0, reply: str | None = None, part: str = "",
    ) -> None:  # fmt: skip
        """Close an environment that raised and note why.

        Args:
            place: where failures are in a row: an environment of several, or an episode.
            part: of the evaluation, noted instead of the id.

        Raises:
            UserError: the environment raised it.
            FailedError: it is the third failure in a row.
        """
        close_error = "" if env is None else close_env(env)
        served, name = isinstance(error, EndpointError), part or env_id
        if isinstance(error, UserError) and not served:
            raise error

        # Told before the run ends, so that the last failure is in the record, too.
        line = plain_line(f"{type(error).__name__}: {error}")
        count = self._in_a_row[place] = self._in_a_row.get(place, 0) + 1
        failure = {"env_id": name, "episode": episode, "seed": seed, "turn": turn, "reply": reply}
        self.tell({**failure, "error": f"{line}; close: {close_error}" if close_error else line})
        if count < FAILURES_IN_A_ROW:
            return
        if served:
            raise error
        raise FailedError(
            f"{name} failed {count} times in a row, last with {line} in episode {episode} (seed {seed}). "
            f"Play it alone: vlgym play {env_id} --seed {seed}"
        ) from error

    def end_row(self, place: Hashable) -> None:
        """End the row of failures: an episode ended there."""
        self._in_a_row.pop(place, None)


def close_env(env: Any) -> str:
    """Close an environment; return its error as one line, empty without one."""
    try:
        env.close()
    except Exception as error:
        return plain_line(f"{type(error).__name__}: {error}")
    return ""


def warn(failure: Failure) -> None:
    """Report a failure that no caller reports."""
    warnings.warn(in_words(failure), RuntimeWarning, stacklevel=3)


def in_words(failure: Failure) -> str:
    """Return a failure as one line."""
    where = "{env_id}, episode {episode} (seed {seed}), turn {turn}".format(**failure)
    served = failure["error"].startswith(EndpointError.__name__)
    who = "the endpoint failed" if served else "the environment failed and was replaced"
    return f"{where}: {who}: {failure['error']}"

"""What a failed request means: ask again, or end the run with a line that says which option to change.

Knows the errors of the `openai` package and the words that servers use; sends nothing and waits for nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .messages import BadAnswerError, show
from .pacing import read_retry_after

AGAIN = {408, 409, 425, 429}
"""Statuses below 500 that another attempt may not meet."""
FILTERED = {"content_filter", "content_policy_violation"}
"""Error codes by which a filter before the model declines a prompt: a refusal, no failure."""

_NO_MODEL = re.compile(
    r"model_not_found|(invalid|unknown|unsupported|not a valid) model|"
    r"\bmodel\b.{0,200}(does not exist|not exist|not found|not a valid|unknown|not supported by)",
    re.I | re.S,
)
_HINTS = (
    (re.compile(r"temperature", re.I), "Leave out --temperature, or give one that this model takes."),
    (re.compile(r"\bseed\b", re.I), "Leave out --seed: this server takes none."),
    (
        re.compile(r"context|too (long|large)|maximum.{0,40}length|prompt.{0,40}(long|exceed)", re.I | re.S),
        "Shorten the prompt (--history-turns, --history-images), or the reply (--max-tokens).",
    ),
    (re.compile(r"max_(completion_)?tokens", re.I), "Change --max-tokens, or leave it out."),
    (
        re.compile(r"image|vision|multi-?modal", re.I),
        "Does this model take pictures? With --history-images 0 it plays without them.",
    ),
)
_RENAME = re.compile(r"unsupported|not supported|instead|\buse\b", re.I)


@dataclass(frozen=True)
class Failure:
    """A failed attempt.

    Attributes:
        said: what the server said or did, as one line.
        again: another attempt may succeed.
        kind: why it cannot: `key`, `credit`, `missing` (404, 405), `model`, `request`. Or `filter`: a refusal;
            `rename`: the limit of tokens has another name there; `unreachable`: nothing listens there; else empty.
        asked: seconds that the server asks to wait.
        hint: what to change, for `request`.
    """

    said: str
    again: bool = True
    kind: str = ""
    asked: float | None = None
    hint: str = ""


def judge(error: Exception, *, timeout: float = 0.0) -> Failure | None:
    """Say what an attempt's error means; `None` for one that is no failure of the server but a bug.

    Args:
        error: from the `openai` package, `TimeoutError`, or `BadAnswerError`.
        timeout: seconds that an answer may take, for the line.
    """
    import openai

    if isinstance(error, BadAnswerError):
        return Failure(f"its answer is {error}")
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Failure(f"no answer within {timeout:g} s (--timeout)")
    if isinstance(error, openai.APIConnectionError):
        refused = type(error.__cause__).__name__ == "ConnectError"
        words = _find_words(error)
        return Failure(f"no connection: {words}" if refused else f"the connection broke: {words}",
                       kind="unreachable" if refused else "")  # fmt: skip
    if isinstance(error, openai.APIStatusError):
        return _judge_status(error)
    return Failure(show(str(error))) if isinstance(error, openai.APIError) else None


def _find_words(error: BaseException) -> str:
    """Return what the first of a chain of errors says: the later ones say less and less."""
    words, found = type(error).__name__, error.__cause__
    while found is not None:
        words = show(str(found)) or type(found).__name__
        found = found.__cause__ or found.__context__
    return words


def _judge_status(error: Any) -> Failure:
    status: int = error.status_code
    words = _read_message(error)
    said = f"{status} {words}".rstrip()
    codes = {error.code, error.type}
    every = f"{words} {error.code or ''} {error.param or ''}"
    if "insufficient_quota" in codes or status == 402:
        return Failure(said, False, "credit")
    if status in AGAIN or status >= 500:
        return Failure(said, asked=read_retry_after(error.response.headers))
    if status in (401, 403):
        return Failure(said, False, "key")
    if codes & FILTERED:
        return Failure(said, False, "filter")
    if _NO_MODEL.search(every):
        return Failure(said, False, "model")
    if status in (404, 405):
        return Failure(said, False, "missing")
    if "max_completion_tokens" in every and _RENAME.search(words):
        return Failure(said, False, "rename", hint="Leave out --max-tokens.")
    hint = next((hint for pattern, hint in _HINTS if pattern.search(every)), "")
    return Failure(said, False, "request", hint=hint)


def _read_message(error: Any) -> str:
    """Return what the body of an error says: servers differ in where they put it."""
    body = error.body
    for name in ("message", "detail", "error", "msg"):
        if isinstance(body, dict) and isinstance(body.get(name), str) and body[name].strip():
            return show(body[name])
    if body:
        return show(body if isinstance(body, str) else str(body))
    return show(error.response.content or error.response.reason_phrase)

"""Run a stranger's code at import: whatever it raises is told in a line, it has limited time, and standard output is
not its own.

This keeps accidents in, not attackers: code of a plugin can do what Python can (see docs/security.md).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .errors import plain_line

SECONDS = 30.0
"""Longest that the code of one plugin may take."""

SWITCH = "VLGYM_PLUGIN_SECONDS"
"""Environment variable with another limit in seconds; 0 is none."""


class TooLong(BaseException):
    """The time is up. It is no `Exception`, so that plugins' own guards let it pass."""


def run_guarded(call: Callable[[], Any], seconds: float | None = None) -> tuple[Any, BaseException | None]:
    """Return what `call()` returns, and `None`; or `None`, and what it raised.

    Only a Ctrl-C of the user's passes through, which is told from a `KeyboardInterrupt` that the code raises itself.
    The time is limited in the main thread of systems with alarm signals, where nobody else has set an alarm.
    """
    limit = read_limit() if seconds is None else seconds
    pressed: list[bool] = []
    try:
        with contextlib.redirect_stdout(sys.stderr), _watched(limit, pressed):
            return call(), None
    except BaseException as error:
        if pressed and isinstance(error, KeyboardInterrupt):
            raise
        return None, error


def describe_error(error: BaseException) -> str:
    """Return one printable line that says what a plugin did."""
    if isinstance(error, TooLong):
        return f"it took more than {error.args[0]:g} seconds to load ({SWITCH} sets another limit)."
    if isinstance(error, SystemExit):
        return f"the module exits at import ({plain_line(str(error))})"
    return plain_line(f"{type(error).__name__}: {error}").rstrip(": ")


def read_limit() -> float:
    """Return the limit in seconds: `SECONDS`, or what `VLGYM_PLUGIN_SECONDS` says if it is a number."""
    try:
        return max(0.0, float(os.environ.get(SWITCH, SECONDS)))
    except ValueError:
        return SECONDS


@contextlib.contextmanager
def _watched(limit: float, pressed: list[bool]) -> Iterator[None]:
    """Note a Ctrl-C in `pressed`, and raise `TooLong` when the limit is over, again and again until the code ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        pressed.append(True)
        if callable(before):
            before(number, frame)

    def stop(number: int, frame: Any) -> None:
        raise TooLong(limit)

    if callable(before):
        signal.signal(signal.SIGINT, note)
    alarm = limit > 0 and hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    alarm = alarm and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    if alarm:
        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, limit, 0.5)
    try:
        yield
    finally:
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if callable(before):
            signal.signal(signal.SIGINT, before)

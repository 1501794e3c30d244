"""How long a request waits before it is sent: for its place in the rate, and after a failure. Sends nothing itself."""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Awaitable, Callable, Mapping

FIRST, LONGEST = 0.5, 60.0
"""Upper bounds in seconds of the wait after the first failure and after any; each one doubles the bound."""
LONGEST_ASKED = 120.0
"""Most seconds that a server's Retry-After is honoured for."""

Sleep = Callable[[float], Awaitable[object]]


class Pace:
    """Spaces requests evenly, and holds all of them back while the server asks for it.

    For one event loop's thread only.

    Args:
        per_minute: most requests in a minute; `None` for no limit.
        sleep: waits so many seconds.
        clock: seconds, never going back.
    """

    def __init__(self, per_minute: float | None, sleep: Sleep, clock: Callable[[], float] = time.monotonic) -> None:
        self._gap = 60 / per_minute if per_minute else 0.0
        self._sleep, self._clock = sleep, clock
        self._next = -math.inf

    async def wait(self) -> float:
        """Wait for the next place; return how many seconds that took."""
        now = self._clock()
        at = max(now, self._next)
        self._next = at + self._gap
        if at > now:
            await self._sleep(at - now)
        return at - now

    def hold(self, seconds: float) -> None:
        """Give out no place within the next seconds."""
        self._next = max(self._next, self._clock() + seconds)


def back_off(failures: int, draw: Callable[[], float], asked: float | None = None) -> float:
    """Return the seconds to wait after so many failures of one request: exponential, with full jitter.

    Args:
        failures: from 1.
        draw: gives a number in [0, 1).
        asked: what the server's Retry-After says; the jitter comes on top.
    """
    return min(asked or 0.0, LONGEST_ASKED) + draw() * min(LONGEST, FIRST * 2 ** min(failures - 1, 30))


def read_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that Retry-After (or `retry-after-ms`) asks for; `None` where it asks for nothing readable.

    Args:
        headers: of the response, found by lower-case names.
        now: seconds since 1970, for a Retry-After that is a date.
    """
    seconds: float | None = None
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif "retry-after" in headers:
            seconds = float(headers["retry-after"])
    except ValueError:
        seconds = _until(headers.get("retry-after", ""), time.time() if now is None else now)
    return seconds if seconds is not None and math.isfinite(seconds) and seconds >= 0 else None


def _until(date: str, now: float) -> float | None:
    try:
        return max(0.0, email.utils.parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None

"""Ctrl-C and SIGTERM in a run: a request to stop where nothing is lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vlgym.terminal import Terminated


@contextmanager
def interruptible() -> Iterator[dict[str, int]]:
    """Turn the first Ctrl-C or SIGTERM into a request to stop after the current update (`flag["signal"]`, 0 before).

    A second one stops at once.
    """
    flag = {"signal": 0}

    def handle(number: int, frame: Any) -> None:
        if flag["signal"]:
            raise KeyboardInterrupt if number == signal.SIGINT else Terminated
        flag["signal"] = number
        print("\nstopping after this update; press Ctrl-C again to stop at once", flush=True)

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)

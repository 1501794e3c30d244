"""Resource limits of a process and its children, and the end of those that exceed them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Limits:
    """Limits of a piece of work: clock and processor seconds, growth of resident MiB."""

    wall_s: float = 20.0
    cpu_s: float = 5.0
    memory_mb: float = 500.0


class ProcessGuard:
    """Watches a process and its descendants in a `with` block, and kills them at a limit.

    Args:
        whole: says whether all processes are there that should be.

    Attributes:
        reason: `None`, or the limit that was passed, `timeout` or `memory`.
        by_clock: whether only the clock passed it: the machine may have been busy.
        whole: answer of `whole()` just before they were killed.
    """

    def __init__(self, pid: int, limits: Limits, whole: Callable[[], bool] = lambda: True) -> None:
        self.pid = pid
        self.limits = limits
        self.whole = True
        self._ask_whole = whole
        self.reason: str | None = None
        self.by_clock = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> ProcessGuard:
        self._begun = time.monotonic()
        self._cpu, self._memory = measure_tree(self.pid)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            cpu_s, memory_mb = measure_tree(self.pid)
            if memory_mb - self._memory > self.limits.memory_mb:
                self.reason = "memory"
            elif cpu_s - self._cpu > self.limits.cpu_s:
                self.reason = "timeout"
            elif time.monotonic() - self._begun > self.limits.wall_s:
                self.reason, self.by_clock = "timeout", True
            if self.reason:
                self.whole = self._ask_whole()
                kill_tree(self.pid)
                return


def list_tree(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants; empty where it is gone."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def measure_tree(pid: int) -> tuple[float, float]:
    """Return processor seconds and resident MiB of a process and its living descendants."""
    cpu_s = size = 0.0
    for member in list_tree(pid):
        with suppress(psutil.Error), member.oneshot():
            times, memory = member.cpu_times(), member.memory_info()
            cpu_s += times.user + times.system
            size += memory.rss
    return cpu_s, size / 2**20


def kill_tree(pid: int) -> None:
    """End a process and its descendants at once."""
    for member in list_tree(pid):
        with suppress(psutil.Error):
            member.kill()

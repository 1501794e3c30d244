"""Limits on what a page may use: a thread that watches the browser's processes and ends them when a limit is passed.

A hung or greedy page cannot be asked to stop, so its whole browser goes; the pool starts another. Reads /proc, hence
Linux.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Limits:
    """What rendering one page, its interactions included, may use.

    Attributes:
        wall_s: seconds by the clock.
        cpu_s: processor seconds of all the browser's processes together.
        memory_mb: growth of their resident memory in MiB.
        elements: displayed elements that are read; more make the page fail.
    """

    wall_s: float = 8.0
    cpu_s: float = 3.0
    memory_mb: float = 500.0
    elements: int = 1500


class Guard:
    """Watches a process and its descendants while a `with` block runs.

    Attributes:
        reason: `None`, or the limit that was passed: `timeout` or `memory`. The processes are dead then.
    """

    interval_s = 0.1

    def __init__(self, pid: int, limits: Limits) -> None:
        self.pid = pid
        self.limits = limits
        self.reason: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Guard:
        self._begun = time.monotonic()
        self._cpu, self._memory = measure_tree(self.pid)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self.interval_s):
            cpu_s, memory_mb = measure_tree(self.pid)
            if memory_mb - self._memory > self.limits.memory_mb:
                self.reason = "memory"
            elif cpu_s - self._cpu > self.limits.cpu_s or time.monotonic() - self._begun > self.limits.wall_s:
                self.reason = "timeout"
            if self.reason:
                kill_tree(self.pid)
                return


def measure_tree(pid: int) -> tuple[float, float]:
    """Return processor seconds and resident MiB of a process and its descendants (dead ones count nothing)."""
    ticks = pages = 0
    for member in list_tree(pid):
        fields = _read_stat(member)
        if fields:
            ticks += int(fields[11]) + int(fields[12])
            pages += int(fields[21])
    return ticks / _TICKS, pages * _PAGE / 2**20


def list_tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir(_PROC):
        if entry.isdigit():
            fields = _read_stat(int(entry))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry))
    found = [pid]
    for member in found:
        found.extend(children.get(member, ()))
    return found


def kill_tree(pid: int) -> None:
    """End a process and its descendants at once."""
    for member in reversed(list_tree(pid)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(member, signal.SIGKILL)


def _read_stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat after the name: state, parent, ..."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return text[text.rfind(")") + 2 :].split()

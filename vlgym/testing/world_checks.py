"""Checks of an environment's effects on its process and its machine, and of another process."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from .playing import Deadline, choose_legal, play_episode
from .subject import Subject, require

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_TARGET = {
    "os.rename": (1, 3), "os.link": (1, 3), "os.symlink": (1, 2), "os.mkdir": (0, 2), "os.rmdir": (0, 1),
    "os.remove": (0, 1), "os.truncate": (0, None),
}  # fmt: skip
"""Indices in an event's arguments of the path, and of the open folder that it starts from."""
_listening: list[Heard] = []
_installed = False


@dataclass
class Heard:
    """Absolute paths that were created, changed or removed, and hosts that were asked for."""

    written: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)

    def outside(self) -> list[str]:
        """Return the written paths outside the folder of temporary files and the user's cache."""
        return sorted(path for path in self.written if not path.startswith(_allowed_roots()))

    def left(self) -> list[str]:
        """Return the written temporary files that are still there."""
        root = os.path.realpath(tempfile.gettempdir()) + os.sep
        return sorted(path for path in self.written if path.startswith(root) and os.path.exists(path))


@contextmanager
def listen_to_audit() -> Iterator[Heard]:
    """Listen until the block ends. A hook stays for ever, idle in between."""
    global _installed
    if not _installed:
        sys.addaudithook(_hear)
        _installed = True
    heard = Heard()
    _listening.append(heard)
    try:
        yield heard
    finally:
        _listening.remove(heard)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if not _listening:
        return
    try:
        if event == "open":
            path, mode, flags = arguments
            writing = set(mode) & set("wax+") if isinstance(mode, str) else flags & _WRITING
            if writing and not isinstance(path, int):
                _note(path)
        elif event in _TARGET:
            path, folder = _TARGET[event]
            if not isinstance(arguments[path], int):
                _note(arguments[path], -1 if folder is None else arguments[folder])
        elif event == "socket.getaddrinfo":
            _note_address(str(arguments[0]))
        elif event == "socket.connect" and isinstance(arguments[1], tuple):
            _note_address(str(arguments[1][0]))
    except Exception:  # a hook that raises would break whatever is being done
        return


def _note(path: Any, folder: int = -1) -> None:
    """Note a path from the folder of a descriptor, or from the working directory."""
    start = "" if folder < 0 else os.readlink(f"/proc/self/fd/{folder}")
    text = os.path.realpath(os.path.join(start, os.fsdecode(path)))
    if text.startswith("/dev/") or "__pycache__" in text:
        return
    for heard in _listening:
        heard.written.add(text)


def _note_address(host: str) -> None:
    if host in ("", "localhost", "::1", "0.0.0.0", "::", "None") or host.startswith("127."):
        return
    for heard in _listening:
        heard.addresses.add(host)


def _allowed_roots() -> tuple[str, ...]:
    home = os.environ.get("HOME") or str(Path("~").expanduser())
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return ("/proc/", *(os.path.realpath(root) + os.sep for root in (tempfile.gettempdir(), cache)))


ROUND = 8  # episodes of a round; caches are filled from the second round on
GROWTH = 40_000  # bytes by which memory may grow in each of two rounds: a frame of 120 x 112 pixels
PROCESS_SECONDS = 4.0  # time after which the other process begins no other episode
RESOURCE_SECONDS = 0.3  # time after which the first of five rounds has no more episodes


def check_side_effects(subject: Subject) -> str:
    """Nothing is printed, no file is written or left, no network is asked. Global generators,
    working directory, environment variables and import path stay as they were.

    Sees: effects of Python code while an environment is made, played and closed; the user's cache,
    and temporary files while it is open, are allowed. Cannot see: files written by C code or other
    processes, and effects of loading.
    """
    before = _list_globals()
    written = io.StringIO()
    with tempfile.TemporaryFile() as captured:
        saved = os.dup(1)
        sys.stdout.flush()
        os.dup2(captured.fileno(), 1)
        try:
            # Two nets: pytest and rich replace sys.stdout, and C libraries write to descriptor 1.
            with contextlib.redirect_stdout(written), listen_to_audit() as heard:
                _play_and_close(subject)

                # The first round may leave a service, and an engine may set variables at loading.
                with patch.dict(os.environ, subject.variables, clear=True), listen_to_audit() as again:
                    _play_and_close(subject)
                    variables = dict(os.environ)
        finally:
            os.dup2(saved, 1)
            os.close(saved)
        captured.seek(0)
        printed = written.getvalue() or captured.read().decode(errors="replace")

    # Each effect has its own line: the first one found is the evidence.
    require(not printed, f"it printed {printed[:80]!r}")
    require(variables == subject.variables, "it changed environment variables")
    after = _list_globals()
    changed = [name for name in before if before[name] != after[name]]
    require(not changed, f"it drew from or changed {', '.join(changed)}")
    for done, paths in (
        ("wrote to", heard.outside()),
        ("left the temporary file(s)", again.left()),
        ("asked the network for", sorted(heard.addresses)),
    ):
        require(not paths, f"it {done} {', '.join(paths[:3])}")
    return "silent; nothing written, no network; global generators, folder and variables untouched"


def check_resources(subject: Subject) -> str:
    """Playing or opening the same episodes again takes no more memory, files, threads or processes.
    Closing twice is allowed.

    Sees: growth with every episode, turn or instance, from about 5 kB an episode. Cannot see:
    memory of C libraries, and slower growth.
    """
    env, seeds, turns = subject.make(), subject.seeds(ROUND, first=200), min(8, subject.spec.max_turns)

    def play(index: int) -> None:
        play_episode(env, seeds[index], choose_legal(index, garbage_every=5), turns)

    # What is loaded once is loaded before the tracing, which would make it slow.
    play(0)
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()

    # Several rounds of the same episodes: caches fill in the first, a leak grows in all.
    try:
        deadline, count = Deadline(RESOURCE_SECONDS), 0
        while count < ROUND and (count < 2 or not deadline.over):
            play(count)
            count += 1
        sizes, counts = [], []
        for _ in range(4):
            for index in range(count):
                play(index)
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
            counts.append(_count_resources())
    finally:
        if started:
            tracemalloc.stop()
    env.close()
    env.close()

    # Growth in each round counts: once is a cache or the collector.
    grown = [after - before for before, after in pairwise(sizes[1:])]
    more = f"the same {count} episodes took {grown[0]} and then {grown[1]} bytes more"
    require(min(grown) < GROWTH * count / ROUND, more)
    _require_no_growth(counts, f"{count} episodes")

    # The same for instances: what a constructor opens has to go with close().
    counts.clear()
    for _ in range(4):
        other = subject.make()
        play_episode(other, seeds[0], choose_legal(0), 2)
        other.close()
        gc.collect()
        counts.append(_count_resources())
    _require_no_growth(counts, "environment")
    return f"{count} episodes five times over: {max(grown)} bytes more at most; closed twice"


def _require_no_growth(counts: list[dict[str, int]], unit: str) -> None:
    for name in counts[0]:
        first, second, third = (count[name] for count in counts[1:])
        require(not first < second < third, f"the number of {name} grew with every {unit}: {third}")


OTHER_PROCESS = """
import datetime, json, os, sys, time
shift = 412 * 86400 + 30_000
real_time, real_ns, real_local, real_gm = time.time, time.time_ns, time.localtime, time.gmtime
real_strftime = time.strftime
time.time = lambda: real_time() + shift
time.time_ns = lambda: real_ns() + shift * 10**9
time.localtime = lambda *given: real_local(*(given or (time.time(),)))
time.gmtime = lambda *given: real_gm(*(given or (time.time(),)))
time.strftime = lambda form, *given: real_strftime(form, *(given or (time.localtime(),)))
time.ctime = lambda *given: time.asctime(time.localtime(*given))
real_datetime = datetime.datetime
class Meta(type):
    def __instancecheck__(cls, value):
        return isinstance(value, real_datetime)
class DateTime(real_datetime, metaclass=Meta):
    @classmethod
    def now(cls, tz=None):
        return real_datetime.fromtimestamp(time.time(), tz)
    @classmethod
    def utcnow(cls):
        return real_datetime.fromtimestamp(time.time(), datetime.timezone.utc).replace(tzinfo=None)
datetime.datetime = DateTime
from vlgym.registry.making import build
from vlgym.env.spec import EnvSpec
from vlgym.testing.fingerprint import measure_behaviour
spec, kwargs, seconds = json.load(sys.stdin)
spec = EnvSpec.from_dict(spec)
make = lambda **more: build(spec, **{**kwargs, **more})
behaviour = measure_behaviour(make, spec, variants=not kwargs, seconds=seconds)
print('FINGERPRINTS', *behaviour.fingerprints, file=sys.stderr, flush=True)
"""
"""Program of the other process: it sets Python's clocks and calendars on before other imports."""


def check_processes(subject: Subject) -> str:
    """Another process computes the same fingerprint. It has another hash seed, time zone and user,
    and runs more than a year later.

    Sees: an effect of hash order, date, time, time zone, user, process number or earlier play, in
    the episodes that take `PROCESS_SECONDS`. Cannot see: a clock that C code reads, another
    machine.
    """
    reached = subject.behaviour.fingerprints
    environment = {
        **os.environ, "PYTHONHASHSEED": "123", "TZ": "Pacific/Kiritimati", "USER": "somebody", "LOGNAME": "somebody",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS], text=True, capture_output=True, timeout=300, env=environment,
        input=json.dumps([subject.spec.to_dict(), subject.kwargs, PROCESS_SECONDS]),
    )  # fmt: skip

    # Libraries may write to stderr, too.
    _, mark, report = done.stderr.partition("FINGERPRINTS ")
    require(mark, f"the other process failed: {done.stderr.strip()[-300:]}")
    there = report.splitlines()[0].split()
    here = list(reached[: len(there)])
    require(there == here, f"fingerprint {here[-1]} here, {there[-1]} in another process at another time")
    return f"the same fingerprint in two processes, a year apart, after {len(here)} of {len(reached)} episodes"


def _play_and_close(subject: Subject) -> None:
    env = subject.make()
    play_episode(env, 1, choose_legal(1, garbage_every=5), 3)
    play_episode(env, 2, choose_legal(2, garbage_every=5), 12)
    env.close()


def _list_globals() -> dict[str, Any]:
    state: Any = np.random.get_state(legacy=False)  # noqa: NPY002 - read, never drawn from
    return {
        "the global random module": random.getstate(),
        "numpy's global generator": (state["state"]["key"].tobytes(), state["state"]["pos"]),
        "the working directory": os.getcwd(),
        "sys.path": list(sys.path),
        "the recursion limit": sys.getrecursionlimit(),
        "numpy's error settings": dict(np.geterr()),
        "the warning filters": list(warnings.filters),
    }


def _count_resources() -> dict[str, int]:
    """Return the numbers of threads and, on Linux, of open files and child processes."""
    counts = {"threads": threading.active_count()}
    folder = Path("/proc/self")
    if folder.is_dir():
        counts["open files"] = len(os.listdir(folder / "fd"))
        with contextlib.suppress(OSError):
            children = [path.read_text().split() for path in (folder / "task").glob("*/children")]
            counts["child processes"] = sum(map(len, children))
    return counts

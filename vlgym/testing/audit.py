"""Record the files that Python code opens for writing and the network addresses that it asks for.

It listens to the interpreter's audit events. System calls of C code and child processes are not heard. Nothing is
prevented.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_TARGET = {
    "os.rename": (1, 3),
    "os.link": (1, 3),
    "os.symlink": (1, 2),
    "os.mkdir": (0, 2),
    "os.rmdir": (0, 1),
    "os.remove": (0, 1),
    "os.truncate": (0, None),
}
"""Indices in an event's arguments of the path, and of the open folder that a relative path starts from."""
_listening: list[Heard] = []
_installed = False


@dataclass
class Heard:
    """Effects of code on the outside world, as heard by a listener.

    Attributes:
        written: paths that were created, changed or removed, as absolute paths.
        addresses: hosts outside this machine that were asked for.
    """

    written: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)

    def outside(self) -> list[str]:
        """Return the written paths outside the folder of temporary files and the user's cache, sorted."""
        return sorted(path for path in self.written if not any(path.startswith(root) for root in _allowed_roots()))

    def left(self) -> list[str]:
        """Return the written temporary files that are still there, sorted."""
        root = os.path.realpath(tempfile.gettempdir()) + os.sep
        return sorted(path for path in self.written if path.startswith(root) and os.path.exists(path))


@contextmanager
def listen() -> Iterator[Heard]:
    """Listen until the block ends. The interpreter offers no way to take a hook off, so one stays and is idle."""
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
    """Note a path; `folder` is the descriptor of the folder that it starts from, -1 for the working directory."""
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

"""Workers that are processes of this machine, each at the other end of a socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .wire import receive
from .workers import START, LostError

COMMAND = (sys.executable, "-m", "vlgym.env_groups.worker")
_LEAVES_S = 5.0  # seconds for closing what a worker opened


class ProcessLink:
    """Connection to a worker process; it starts the process.

    Args:
        index: of the worker.
        command: what is run, with the number of the socket after it.
    """

    def __init__(self, index: int, command: Sequence[str] = COMMAND) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(START)
        with theirs:
            # A new process group: Ctrl-C is for the learner, which goes on to the end of its update.
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, process_group=0,
            )  # fmt: skip
        self.pid = self._process.pid
        self.name = f"worker {index} (process {self.pid})"

    def send(self, frame: bytes) -> None:
        """See `Link`."""
        with suppress(OSError):  # it has ended; `receive` tells
            self._socket.sendall(frame)

    def flush(self) -> None:
        """See `Link`: everything was sent."""

    def receive(self, limit: float) -> Any:
        """See `Link`."""
        self._socket.settimeout(limit)
        try:
            return receive(self._socket)
        except TimeoutError:
            raise LostError(f"it did not answer within {limit:g} s") from None
        except (OSError, EOFError):
            raise LostError(self._explain_end()) from None

    def finish(self) -> None:
        """See `Link`."""
        self._socket.close()

    def end(self) -> None:
        """See `Link`: at once; after `finish` it may first close what it opened."""
        if self._socket.fileno() < 0:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_LEAVES_S)
        self._socket.close()
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)  # with what it started
        self._process.wait()

    def _explain_end(self) -> str:
        try:
            status = self._process.wait(timeout=_LEAVES_S)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        return f"it was ended by signal {-status}" if status < 0 else f"it ended with status {status}"

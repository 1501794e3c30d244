"""Workers at the other end of a socket, and those that are processes of this machine."""

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

WORKER_COMMAND = (sys.executable, "-m", "vlgym.env_groups.worker")
LEAVES_S = 5.0  # for a worker to close its environments


class SocketLink:
    """Connection to a worker at the other end of a socket."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self._socket, self.name = connection, name

    def send(self, frame: bytes) -> None:
        with suppress(OSError):  # it has ended; `receive` tells
            self._socket.settimeout(START)
            self._socket.sendall(frame)

    def flush(self) -> None:
        """See `Link`: everything was sent."""

    def receive(self, limit: float) -> Any:
        try:
            return receive(self._socket, limit)
        except TimeoutError:
            raise LostError(f"it did not answer within {limit:g} s") from None
        except (OSError, EOFError):
            raise LostError(self.explain_end()) from None

    def finish(self) -> None:
        self._socket.close()

    def end(self) -> None:
        self._socket.close()

    def explain_end(self) -> str:
        return "it closed its connection"


class ProcessLink(SocketLink):
    """Connection to a worker process, which it starts by `command` and the number of its socket."""

    def __init__(self, index: int, command: Sequence[str] = WORKER_COMMAND) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = start_worker(theirs, command)
        self.pid = self._process.pid
        super().__init__(ours, f"worker {index} (process {self.pid})")

    def end(self) -> None:
        """See `Link`: at once; after `finish` it may first close its environments."""
        leaves = LEAVES_S if self._socket.fileno() < 0 else 0
        self._socket.close()
        end_worker(self._process, leaves)

    def explain_end(self) -> str:
        try:
            status = self._process.wait(timeout=LEAVES_S)
        except subprocess.TimeoutExpired:
            return super().explain_end()
        return f"it was ended by signal {-status}" if status < 0 else f"it ended with status {status}"


def start_worker(connection: socket.socket, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a worker process that answers on a socket."""
    # A new process group: Ctrl-C is for the learner, which goes on to the end of its update.
    return subprocess.Popen(
        [*command, str(connection.fileno())], pass_fds=[connection.fileno()], process_group=0,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **options,
    )  # fmt: skip


def end_worker(process: subprocess.Popen[bytes], leaves: float) -> None:
    """End a worker and what it started, by force after some seconds."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=leaves)
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

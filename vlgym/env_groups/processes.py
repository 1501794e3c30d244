"""Workers that are processes of this machine, each at the other end of a socket."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .wire import PREFIX, Buffer, NonsenseError, join, read_prefix, unpack
from .workers import LostError

COMMAND = (sys.executable, "-m", "vlgym.env_groups.worker")
_LEAVES_S = 5.0  # seconds for closing what a worker opened


class ProcessLink:
    """The way to a process; it starts one.

    Args:
        index: of the worker.
        command: what is run, with the number of the socket after it.

    Attributes:
        pid: of the process.
        name: for messages.
    """

    def __init__(self, index: int, command: Sequence[str] = COMMAND) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            # A group of its own: Ctrl-C is for the learner, which goes on to the end of its update.
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, process_group=0,
            )  # fmt: skip
        self.pid, self.name = self._process.pid, f"worker {index} (process {self._process.pid})"
        self._socket.setblocking(False)
        self._poll = select.poll()
        self._out: list[memoryview] = []
        self._text = 0
        self._begin(PREFIX.size, head=True)

    def send(self, frames: Sequence[Sequence[Buffer]]) -> None:
        """See `Link`."""
        self._out.append(memoryview(join(frames)))
        with suppress(OSError):  # it has ended; `receive` tells
            self._push()

    def receive(self, limit: float) -> Any:
        """See `Link`."""
        end = time.monotonic() + limit
        try:
            while True:
                if self._got == len(self._held) and (answer := self._take()) is not None:
                    return answer[0]
                if self._pull():
                    continue
                self._poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._out else 0))
                left = end - time.monotonic()
                if left <= 0 or not self._poll.poll(1000 * left):
                    raise LostError(f"it did not answer within {limit:g} s")
                self._push()
        except NonsenseError as error:
            raise LostError(f"it wrote something that is no answer: {error}") from None
        except OSError:
            raise LostError(self._explain_end()) from None

    def finish(self) -> None:
        """See `Link`."""
        self._socket.close()

    def end(self) -> None:
        """See `Link`: at once; after `finish` it may first close what it opened."""
        finishing = self._socket.fileno() < 0
        self._socket.close()
        if finishing:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_LEAVES_S)
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)  # with what it started
        self._process.wait()

    def __del__(self) -> None:
        with suppress(AttributeError):
            if self._process.poll() is None:
                self.finish()
                self.end()

    def _begin(self, size: int, *, head: bool) -> None:
        self._held, self._got, self._head = bytearray(size), 0, head

    def _take(self) -> tuple[Any] | None:
        """What was read whole: the answer, or `None` where it was the prefix of one."""
        if self._head:
            self._text, arrays = read_prefix(self._held)
            self._begin(self._text + arrays, head=False)
            return None
        view = memoryview(self._held)
        answer = unpack(view[: self._text], view[self._text :])
        self._begin(PREFIX.size, head=True)
        return (answer,)

    def _pull(self) -> bool:
        """Read what is there; return whether there was anything."""
        try:
            count = self._socket.recv_into(memoryview(self._held)[self._got :])
        except BlockingIOError:
            return False
        if count == 0:
            raise LostError(self._explain_end())
        self._got += count
        return True

    def _push(self) -> None:
        """Write what there is room for."""
        try:
            while self._out:
                count = self._socket.send(self._out[0])
                self._out[0] = self._out[0][count:]
                if not self._out[0]:
                    self._out.pop(0)
        except BlockingIOError:
            return

    def _explain_end(self) -> str:
        try:
            status = self._process.wait(timeout=_LEAVES_S)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        return f"it was ended by signal {-status}" if status < 0 else f"it ended with status {status}"

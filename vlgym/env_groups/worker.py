"""The worker process: `python -m vlgym.env_groups.worker [tcp] SOCKET`; `processes` starts it.

With `tcp` the learner is on another machine, and no argument that it sends names code.

It reads a frame, executes it, writes a frame, and ends when the other side does. Environments are
made and stepped in the main thread, because graphics contexts belong to the thread that made them.
A second thread writes the answers, so that a busy learner keeps no environment waiting.
"""

import os
import queue
import socket
import sys
import threading
from contextlib import suppress

from ..terminal import end_with_parent
from .host import Host, make_without_code
from .wire import receive


def serve_connection(connection: socket.socket, host: Host) -> None:
    """Answer until the connection ends."""
    answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_write, args=(connection, answers), daemon=True).start()
    try:
        with suppress(OSError, EOFError):  # the learner has gone
            while True:
                answers.put(host.write_answer(receive(connection)))
    finally:
        host.close()


def _write(connection: socket.socket, answers: queue.SimpleQueue[bytes]) -> None:
    with suppress(OSError):
        while True:
            connection.sendall(answers.get())


if __name__ == "__main__":
    end_with_parent()
    os.dup2(2, 1)  # what a library prints is no answer, and belongs to no output of the learner's
    with socket.socket(fileno=int(sys.argv[-1])) as learner:
        serve_connection(learner, Host(make_without_code) if "tcp" in sys.argv else Host())

"""The worker process: `python -m vlgym.env_groups.worker SOCKET`, started by `vlgym.env_groups.processes`.

It reads a frame, does what it says, writes a frame, and ends when the other side does. Environments are made and
stepped in the main thread, because graphics contexts belong to the thread that made them; a thread beside it writes the
answers, so that a learner that is busy elsewhere keeps no environment waiting. There are never more answers than
environments.
"""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
from contextlib import suppress

from .host import Host
from .wire import PREFIX, Buffer, read_prefix, unpack


def serve(connection: socket.socket, host: Host) -> None:
    """Answer until the connection ends."""
    answers: queue.SimpleQueue[list[Buffer]] = queue.SimpleQueue()
    threading.Thread(target=_write, args=(connection, answers), daemon=True).start()
    try:
        while (prefix := _read(connection, PREFIX.size)) is not None:
            text, arrays = read_prefix(prefix)
            held = _read(connection, text + arrays)
            if held is None:
                return
            view = memoryview(held)
            answers.put(host.write_answer(unpack(view[:text], view[text:])))
    except OSError:
        return  # the learner has gone
    finally:
        host.close()


def _write(connection: socket.socket, answers: queue.SimpleQueue[list[Buffer]]) -> None:
    with suppress(OSError):
        while True:
            for part in answers.get():
                connection.sendall(part)


def _read(connection: socket.socket, size: int) -> Buffer | None:
    """Read so many bytes; `None` at the end."""
    held, got = bytearray(size), 0
    view = memoryview(held)
    while got < size:
        count = connection.recv_into(view[got:])
        if count == 0:
            return None
        got += count
    return held


def main(host: Host | None = None) -> None:
    """Serve on the inherited socket whose number is the first argument."""
    os.dup2(2, 1)  # what a library prints is no answer, and belongs to no output of the learner's
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        serve(connection, host or Host())


if __name__ == "__main__":
    main()

"""Several processes of one run, forked from the test's own: torch is not imported again in each."""

from __future__ import annotations

import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 600.0  # seconds; a machine may be busy


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]


def begin(count: int, work: Callable[[], Any], logs: Path) -> list[int]:
    """Start processes as torchrun would, without its watching them; return their ids."""
    logs.mkdir(parents=True, exist_ok=True)
    port = str(free_port())
    sys.stdout.flush()
    children = []
    for rank in range(count):
        child = os.fork()
        if child == 0:
            status = 99
            try:
                sys.stdout = sys.stderr = (logs / str(rank)).open("w")
                if count > 1:
                    os.environ.update(
                        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count),
                        MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                    )  # fmt: skip
                work()
                status = 0
            except SystemExit as stop:
                status = int(stop.code or 0)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)
        children.append(child)
    return children


def end(children: list[int], logs: Path) -> list[tuple[int, str]]:
    """Wait for processes; return the exit status of each (a signal's is negative) and what it
    printed."""
    deadline, statuses = time.monotonic() + PATIENCE, {}
    while len(statuses) < len(children):
        for child in children:
            if child not in statuses:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    statuses[child] = os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            for child in set(children) - set(statuses):
                os.kill(child, 9)
                os.waitpid(child, 0)
                statuses[child] = 999
        time.sleep(0.01)
    return [(statuses[child], (logs / str(rank)).read_text()) for rank, child in enumerate(children)]


def together(count: int, work: Callable[[], Any], logs: Path) -> list[str]:
    """Do something in several processes, which must all end well; return what each printed."""
    done = end(begin(count, work, logs), logs)
    assert all(status == 0 for status, _ in done), "\n".join(text for _, text in done)
    return [text for _, text in done]

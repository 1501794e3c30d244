"""Several processes of one run, forked from the test's own: torch is not imported again in each."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 600.0  # seconds; a machine may be busy


def fork(count: int, work: Callable[[], Any], logs: Path) -> list[tuple[int | None, str]]:
    """Do something in several processes, as torchrun would start them; return the exit status (a
    signal's is negative) and output of each."""
    logs.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def begin(rank: int) -> None:
        sys.stdout = sys.stderr = (logs / str(rank)).open("w")
        if count > 1:
            os.environ.update(
                RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count),
                MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
            )  # fmt: skip
        work()

    children = [multiprocessing.get_context("fork").Process(target=begin, args=(rank,)) for rank in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join(PATIENCE)
        child.kill()
    return [(child.exitcode, (logs / str(rank)).read_text()) for rank, child in enumerate(children)]

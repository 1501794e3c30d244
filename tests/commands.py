"""Runs a command of `vlgym` in this process, and waits for what other processes do."""

import io
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from vlgym.cli.app import main


class Output(NamedTuple):
    """Text that a command wrote to each of its streams."""

    out: str
    err: str


def invoke(*words: object, status: int = 0, typed: str = "") -> Output:
    """Run `vlgym` with these words while a person types `typed`; return its output."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", io.StringIO(typed)):
        ended = main([str(word) for word in words])
    assert ended == status, (words, out.getvalue(), err.getvalue())
    return Output(out.getvalue(), err.getvalue())


def is_running(process: int) -> bool:
    """Return whether a process has not ended, though it may wait to be reaped."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(met: Callable[[], object]) -> None:
    """Wait two minutes at most."""
    end = time.monotonic() + 120
    while not met():
        assert time.monotonic() < end
        time.sleep(0.02)

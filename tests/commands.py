"""Runs a command of `vlgym` in this process."""

import io
from contextlib import redirect_stderr, redirect_stdout
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

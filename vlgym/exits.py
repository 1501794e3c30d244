"""How every command ends: with one line for a problem that the user can fix, and with a status of the table in
`vlgym.errors`."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .errors import UserError
from .terminal import prepare_output

DONE, FAILED, WRONG, INTERRUPTED, UNREAD, TERMINATED = 0, 1, 2, 130, 141, 143

_SYSTEM = {
    errno.ENOSPC: "Make room on that disk, or choose another one.",
    errno.EDQUOT: "Your share of that disk is used up: make room, or choose another one.",
    errno.EFBIG: "This system allows no larger file (`ulimit -f`).",
    errno.EROFS: "Choose another folder.",
    errno.EACCES: "Choose another folder, or ask for the permission.",
    errno.EPERM: "Choose another folder, or ask for the permission.",
    errno.EISDIR: "A file's name is needed there.",
    errno.ENOTDIR: "A part of that path is a file.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EMFILE: "Too many files are open (`ulimit -n`).",
}
"""Errors of the operating system that are no bug, and what to do about each."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came: `kill`, or the time limit of a job. Whatever tidies up after Ctrl-C tidies up after it, too."""


def run_command(program: str, command: Callable[[], Any]) -> int:
    """Run a command and return its exit status. Only bugs leave as exceptions, with their traceback.

    Args:
        program: begins the line that says what was wrong.
        command: the work; an integer that it returns is the status.
    """
    prepare_output()
    try:
        with _terminable():
            result = _run_and_flush(command)
        return result if isinstance(result, int) else DONE
    except UserError as error:
        return _say(f"{program}: {error}", error.exit_status)
    except BrokenPipeError:
        return _leave_unread()
    except Exception as error:
        if (line := explain_system_error(error)) is None:
            raise
        return _say(f"{program}: {line}", WRONG)
    except KeyboardInterrupt as stop:
        return _say_stopped(program, stop)
    except SystemExit as stop:  # typer and tyro raise it, for Ctrl-C and closed pipes, too
        if (pipe := _cause(stop, BrokenPipeError)) or (key := _cause(stop, KeyboardInterrupt)):
            return _leave_unread() if pipe else _say_stopped(program, key)
        if isinstance(stop.code, str):
            return _say(stop.code, FAILED)
        return stop.code or DONE


def explain_system_error(error: Exception) -> str | None:
    """Return a line on an error of the operating system that the user can do something about; `None` for others.

    Libraries written in Rust (safetensors, tokenizers) raise errors of their own, which hold the system's number as
    text.
    """
    number, name = getattr(error, "errno", None), getattr(error, "filename", None)
    if number is None and (found := re.search(r"\(os error (\d+)\)", str(error))):
        number = int(found.group(1))
    if number not in _SYSTEM or isinstance(error, UserError):
        return None
    return f"{os.strerror(number)}{f' ({name})' if name else ''}. {_SYSTEM[number]}"


def _run_and_flush(command: Callable[[], Any]) -> Any:
    """Run a command; what cannot be printed at its end is an error of the command, not of Python's last breath."""
    try:
        result = command()
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return result


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM raise `Terminated`, so that browsers and files are closed. Signals are the main thread's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: Any) -> None:
        raise Terminated

    previous = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _cause(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """The exception of a kind that an exception came from."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, kind):
        found = found.__cause__ or found.__context__
    return found


def _say_stopped(program: str, stop: BaseException | None) -> int:
    if isinstance(stop, Terminated):
        return _say(f"\n{program}: stopped by SIGTERM.", TERMINATED)
    return _say(f"\n{program}: interrupted.", INTERRUPTED)


def _leave_unread() -> int:
    """Let Python's last flush go nowhere: whoever read the output (`| head`) has gone."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return UNREAD


def _say(line: str, status: int) -> int:
    with suppress(OSError):
        sys.stderr.write(f"{line}\n")
    return status

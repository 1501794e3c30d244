"""The end of every command: one line for a problem that the user can fix, and a status of `vlgym.errors`."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .errors import UserError
from .terminal import prepare_output

DONE, FAILED, WRONG, INTERRUPTED, UNREAD, TERMINATED = 0, 1, 2, 130, 141, 143

_SYSTEM = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR,
    errno.ENAMETOOLONG, errno.EMFILE,
}  # fmt: skip
"""Errors of the operating system that are the user's to fix."""


def end_with_parent() -> None:
    """End this process, with what it started, when the process that started it has ended, even in the middle of a step.

    The process leads its own process group.
    """

    def watch(parent: int) -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.killpg(0, signal.SIGKILL)

    if os.getpgrp() == os.getpid():
        threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()


class Terminated(KeyboardInterrupt):
    """SIGTERM came: `kill`, or the time limit of a job. Cleanup after Ctrl-C also runs after it."""


def run_command(program: str, command: Callable[[], Any]) -> int:
    """Run a command and return its exit status. Only bugs leave as exceptions, with their traceback.

    Args:
        program: begins the line that says what was wrong.
        command: the work; an integer that it returns is the status.
    """
    prepare_output()
    try:
        with _terminable():
            try:
                result = command()
            finally:
                sys.stdout.flush()  # a failed write is an error of the command, not of the interpreter's shutdown
        return result if isinstance(result, int) else DONE
    except UserError as error:
        return _say(f"{program}: {error}", error.exit_status)
    except (BrokenPipeError, KeyboardInterrupt, SystemExit) as stop:  # typer raises SystemExit for all of these
        if _cause(stop, BrokenPipeError):
            with suppress(OSError, ValueError):  # the reader of the output (`| head`) has gone
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return UNREAD
        if key := _cause(stop, KeyboardInterrupt):
            if isinstance(key, Terminated):
                return _say(f"\n{program}: stopped by SIGTERM.", TERMINATED)
            return _say(f"\n{program}: interrupted.", INTERRUPTED)
        code = getattr(stop, "code", None)
        return _say(code, FAILED) if isinstance(code, str) else code or DONE
    except Exception as error:
        if (line := explain_system_error(error)) is None:
            raise
        return _say(f"{program}: {line}", WRONG)


def explain_system_error(error: Exception) -> str | None:
    """Return a line on an error of the operating system that the user can do something about; `None` for others.

    Libraries written in Rust (safetensors, tokenizers) raise other classes, with the system's error number as text.
    """
    number, name = getattr(error, "errno", None), getattr(error, "filename", None)
    if number is None and (found := re.search(r"\(os error (\d+)\)", str(error))):
        number = int(found.group(1))
    if number not in _SYSTEM or isinstance(error, UserError):
        return None
    return f"{os.strerror(number)}{f' ({name})' if name else ''}."


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
    """Return the nearest exception of a class among an exception and its causes, or `None`."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, kind):
        found = found.__cause__ or found.__context__
    return found


def _say(line: str, status: int) -> int:
    with suppress(OSError):
        sys.stderr.write(f"{line}\n")
    return status

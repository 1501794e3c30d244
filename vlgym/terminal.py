"""A command and its terminal: how it ends, consoles of the right width, progress bars that fit.

The one place that knows of widths, NO_COLOR and pipes. It imports `rich` lazily.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from .errors import UserError, show_safe

DONE, FAILED, WRONG, INTERRUPTED, UNREAD, TERMINATED = 0, 1, 2, 130, 141, 143

_SYSTEM = {  # errors of the operating system that are the user's to fix
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR,
    errno.ENAMETOOLONG, errno.EMFILE,
}  # fmt: skip
MOST_ERROR = 2000  # characters of an error that are printed


def end_with_parent() -> None:
    """End this process and its group, which it leads, when its parent has ended."""

    def watch(parent: int) -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.killpg(0, signal.SIGKILL)

    if os.getpgrp() == os.getpid():
        threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()


class Terminated(KeyboardInterrupt):
    """SIGTERM came: `kill`, or a job's time limit. Cleanup after Ctrl-C also runs after it."""


def run_command(program: str, command: Callable[[], Any]) -> int:
    """Run a command; return its exit status, or the integer that it returns. Bugs stay exceptions.

    `program` begins the line of an error.
    """
    prepare_output()
    try:
        with _terminable():
            try:
                result = command()
            finally:
                sys.stdout.flush()  # a failed write is the command's error, not the interpreter's
        return result if isinstance(result, int) else DONE

    # typer raises SystemExit for a closed pipe and for Ctrl-C, too.
    except UserError as error:
        return say_error(f"{program}: {error}", error.exit_status)
    except (BrokenPipeError, KeyboardInterrupt, SystemExit) as stop:
        if _cause(stop, BrokenPipeError):
            with suppress(OSError, ValueError):  # the reader of the output (`| head`) has gone
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return UNREAD
        if key := _cause(stop, KeyboardInterrupt):
            if isinstance(key, Terminated):
                return say_error(f"\n{program}: stopped by SIGTERM.", TERMINATED)
            return say_error(f"\n{program}: interrupted.", INTERRUPTED)
        code = getattr(stop, "code", None)
        return say_error(code, FAILED) if isinstance(code, str) else code or DONE
    except Exception as error:
        if (line := explain_system_error(error)) is None:
            raise
        return say_error(f"{program}: {line}", WRONG)


def explain_system_error(error: Exception) -> str | None:
    """Return a line on an error of the operating system that the user can fix; `None` for others.

    Libraries written in Rust (safetensors, tokenizers) have the system's number in their texts.
    """
    number, name = getattr(error, "errno", None), getattr(error, "filename", None)
    if number is None and (match := re.search(r"\(os error (\d+)\)", str(error))):
        number = int(match.group(1))
    if number not in _SYSTEM or isinstance(error, UserError):
        return None
    return f"{os.strerror(number)}{f' ({name})' if name else ''}."


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM, a signal of the main thread, raise `Terminated`: files are closed."""
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
    """Return the nearest exception of a class among an exception and its causes."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, kind):
        cause = cause.__cause__ or cause.__context__
    return cause


def say_error(line: str, status: int = FAILED) -> int:
    """Print an error, up to `MOST_ERROR` safe characters, without logins and queries of addresses.

    The one way by which errors reach the terminal. Returns the status.
    """
    line = line[: 4 * MOST_ERROR]  # the pattern takes quadratic time
    line = re.sub(r"""://(?:[^\s/'"@]*:[^\s'"]*|[^\s/'"@]*)@(?!https?://)""", "://", line)
    line = re.sub(r"""(://[^\s?'"]*)\?[^\s'"]*""", r"\1", line)
    with suppress(OSError):
        sys.stderr.write(f"{fit_words(show_safe(line)[:MOST_ERROR], sys.stderr)}\n")
    return status


if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

PIPED_WIDTH = 160  # columns of what goes to no terminal, unless COLUMNS says otherwise
LEAST_WRAPPED = 20  # columns of a wrapped text
SLOW_S, SELDOM_S = 2.0, 60.0  # before the first line on a model's speed, and between two
Advance = Callable[..., None]  # moves a bar by one; takes any arguments, to be called back with


def prepare_output() -> None:
    """Make the process's output fit its terminal; called once, by a program's main function.

    A stream that the caller closed (`>&-`) is the null device. Characters that an encoding lacks
    are written by their numbers. A bug's traceback is as safe to print as other errors.
    """
    sys.excepthook = lambda *error: print(show_safe("".join(traceback.format_exception(*error))), file=sys.stderr)
    if os.environ.get("NO_COLOR"):
        os.environ["TERM"] = "dumb"  # rich and tyro would still write bold letters
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_WRONLY)  # the lowest free number, which is the stream's
            os.set_inheritable(null, True)
            setattr(sys, name, os.fdopen(null, "w"))
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")


def open_console(*, stderr: bool = False) -> Console:
    """Return a console that prints text as `show_safe` gives it, without markup and highlighting.

    On a terminal lines are wrapped between words; elsewhere they stay whole.
    """
    from rich.console import Console

    class SafeConsole(Console):
        def print(self, *objects: Any, **how: Any) -> None:
            safe = (show_safe(each) if isinstance(each, str) else each for each in objects)
            super().print(*safe, **how)

    stream = sys.stderr if stderr else sys.stdout
    console = SafeConsole(file=stream, markup=False, emoji=False, highlight=False, width=measure_width(stream))
    console.soft_wrap = not stream.isatty()
    return console


def measure_width(stream: Any) -> int:
    """Return the columns of a stream: COLUMNS, else the terminal's, else `PIPED_WIDTH`."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdigit() and int(chosen):
        return int(chosen)
    if not stream.isatty():
        return PIPED_WIDTH
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def is_live(console: Console) -> bool:
    """True if lines can be overwritten: a terminal that is not `dumb`."""
    return console.is_terminal and not console.is_dumb_terminal


def open_progress(console: Console) -> Progress:
    """Return bars of name, count, time left and the task's field `note`; gone when they stop.

    Nothing is shown where lines cannot be written over.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class Words(ProgressColumn):
        def __init__(self, read: Callable[[Task], str], ratio: int) -> None:
            self.read = read
            super().__init__(Column(no_wrap=True, overflow="ellipsis", ratio=ratio))

        def render(self, task: Task) -> Text:
            return Text(self.read(task))

    # A narrow terminal has no place for notes. A learner's update may take minutes.
    name = Words(lambda task: task.description, 1)
    columns = [name, BarColumn(bar_width=8), MofNCompleteColumn(), TimeRemainingColumn()]
    if console.width >= 80:
        columns.append(Words(lambda task: task.fields.get("note", ""), 3))
    return Progress(
        *columns, console=console, transient=True, expand=True, disable=not is_live(console),
        speed_estimate_period=600,
    )  # fmt: skip


class Pace:
    """Speed of a model whose tokens come slowly, from when it is made."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.tokens, self._due = 0, SLOW_S

    def __str__(self) -> str:
        return f"{self.tokens / max(1e-9, time.monotonic() - self.start):,.0f} tokens/s"

    def add(self, tokens: int) -> str:
        """Count tokens; return the speed, or an empty text where no line is due.

        One is due after `SLOW_S` seconds, then once in `SELDOM_S`.
        """
        self.tokens += tokens
        seconds = time.monotonic() - self.start
        if not self.tokens or seconds < self._due:
            return ""
        self._due = seconds + SELDOM_S
        return f"{self.tokens:,} tokens in {seconds:,.0f} s, {self}"


@contextmanager
def counting(progress: Progress, name: str, total: int) -> Iterator[Advance]:
    """Show a task's progress in the block; yield the function that moves its bar.

    Without a live terminal, print one line at its beginning.
    """
    if progress.disable:
        progress.console.print(f"{name}: {total} ...", soft_wrap=True)
    task = progress.add_task(name, total=total)
    try:
        yield lambda *_: progress.advance(task)
    finally:
        progress.remove_task(task)


def fit_words(text: str, stream: Any) -> str:
    """Return a text for a stream: on a terminal its lines are wrapped between words."""
    if not stream.isatty():
        return text
    width = measure_width(stream)
    wrap = partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrap(line) if len(line) > width else line for line in text.split("\n"))


def print_rows(console: Console, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that has rows; where it is too wide, cells after the first stand below it."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) <= console.width:
        for row in (headers, *rows) if rows else ():
            line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            console.print(line.rstrip(), style="bold" if row is headers else None, soft_wrap=True)
        return

    # Each cell below the first carries its header.
    for first, *others in rows:
        lines = [""]
        for part in (f"{header} {cell}" for header, cell in zip(headers[1:], others, strict=True) if cell):
            if lines[-1] and len(lines[-1]) + 2 + len(part) > console.width:
                lines.append("")
            lines[-1] += f"  {part}"
        console.print("\n".join([first, *lines]), soft_wrap=True)


def print_wrapped(console: Console, rows: Sequence[Sequence[str]], most: int = 0) -> None:
    """Print rows whose last cell is wrapped between words, or stands below the others.

    Args:
        rows: cells; the columns before the last are as wide as their longest cell.
        most: lines of a last cell; the rest is left out. 0 for all.
    """
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    indent = sum(widths) + 2 * len(widths)
    below = console.width - indent < LEAST_WRAPPED
    indent = 4 if below else indent
    shape: dict[str, Any] = {"max_lines": most or None, "break_long_words": False, "break_on_hyphens": False}

    # Lines after the first are indented to the last column.
    for row in rows:
        head = "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False))
        head += f"\n{' ' * indent}" if below else ""
        width = max(console.width - indent, LEAST_WRAPPED)
        lines = textwrap.wrap(row[-1], width, placeholder=" ...", **shape)
        console.print(f"\n{' ' * indent}".join([head + (lines or [""])[0], *lines[1:]]).rstrip(), soft_wrap=True)

"""One question to the terminal: does it show sixels?

It is DEC's `ESC [ c` ("primary device attributes"), which every terminal since the VT100 knows; an answer `ESC [ ? 62 ;
4 c` has the attribute 4 where it shows sixels. No other question is asked: terminals that do not know one print it.

A terminal answers as if somebody typed. So it is asked only where nothing was typed ahead, where both ends are
terminals and this process has the keyboard; the answer is waited for and never shown.
"""

from __future__ import annotations

import os
import re
import select
import sys
import time
from functools import cache

QUESTION = b"\x1b[c"
ANSWER = re.compile(rb"\x1b\[\?([0-9;]*)c")
SIXELS = "4"

LONGEST_WAIT = 1.0
"""Seconds to wait for the answer: time enough for a remote machine; most answer in a few milliseconds."""

MOST_BYTES = 256
"""Bytes that are read at most: more is no answer."""


@cache
def shows_sixels() -> bool:
    """Whether the terminal of this process says that it shows sixels; asked once."""
    try:
        return SIXELS in ask_attributes(sys.stdin.fileno(), sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):  # a stream without a file, or a terminal that went away
        return False


def ask_attributes(keyboard: int, screen: int, seconds: float = LONGEST_WAIT) -> list[str]:
    """Ask a terminal for its attributes, and leave its settings as they were.

    Args:
        keyboard: file descriptor to read the answer from.
        screen: file descriptor to write the question to.
        seconds: how long to wait for the answer.

    Returns:
        The attributes, such as `["62", "4"]`; empty where the terminal cannot be asked or does not answer.

    Raises:
        OSError: the terminal went away.
    """
    try:
        import termios
    except ImportError:  # Windows
        return []
    if not (os.isatty(keyboard) and os.isatty(screen)) or os.tcgetpgrp(keyboard) != os.getpgrp():
        return []
    before = termios.tcgetattr(keyboard)
    silent = termios.tcgetattr(keyboard)
    silent[3] &= ~(termios.ICANON | termios.ECHO)  # letter by letter, and not shown; Ctrl-C works as ever
    silent[6][termios.VMIN], silent[6][termios.VTIME] = 0, 0
    try:
        termios.tcsetattr(keyboard, termios.TCSANOW, silent)
        if _has_input(keyboard, 0.0):
            return []  # it belongs to whoever typed it
        os.write(screen, QUESTION)
        found = ANSWER.search(_read_answer(keyboard, seconds))
        return found[1].decode("ascii").split(";") if found else []
    except termios.error:
        return []
    finally:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)


def _read_answer(keyboard: int, seconds: float) -> bytes:
    """What comes until the answer is whole or the time is up."""
    read, end = b"", time.monotonic() + seconds
    while not ANSWER.search(read) and len(read) < MOST_BYTES and _has_input(keyboard, end - time.monotonic()):
        piece = os.read(keyboard, 1)  # nothing behind the answer is taken
        if not piece:
            break
        read += piece
    return read


def _has_input(keyboard: int, seconds: float) -> bool:
    return bool(select.select([keyboard], [], [], max(0.0, seconds))[0])

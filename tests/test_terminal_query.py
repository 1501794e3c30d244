"""The one question to the terminal, on a real pseudo terminal whose other end is this test."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import termios
import time

import pytest

from vlgym.terminal_query import ask_attributes

ASK = "import sys; from vlgym.terminal_query import ask_attributes as ask; "
SHOW = "print('found', *ask(0, 1, 1.0), flush=True)"
READ = "; print('read', repr(sys.stdin.readline()), flush=True)"


class Terminal:
    """A program in a terminal of its own; what it writes is kept, and its question may be answered."""

    def __init__(self, program: str) -> None:
        self.child, self.end = pty.fork()
        if self.child == 0:
            os.environ.pop("COLUMNS", None)
            os.execv(sys.executable, [sys.executable, "-c", program])
        self.screen = b""

    def wait_for(self, pattern: bytes, seconds: float = 20.0) -> re.Match[bytes] | None:
        """Read until the pattern stands on the screen; `None` where the program ends or is silent for too long."""
        until = time.monotonic() + seconds
        while not (found := re.search(pattern, self.screen)):
            if not select.select([self.end], [], [], max(0.0, until - time.monotonic()))[0]:
                return None
            try:
                self.screen += os.read(self.end, 1024)
            except OSError:  # the program has ended
                return re.search(pattern, self.screen)
        return found

    def type(self, text: bytes) -> None:
        os.write(self.end, text)

    def is_as_usual(self) -> bool:
        """Whether lines are edited and shown."""
        return bool(termios.tcgetattr(self.end)[3] & termios.ICANON and termios.tcgetattr(self.end)[3] & termios.ECHO)

    def close(self) -> None:
        os.close(self.end)
        os.waitpid(self.child, 0)


@pytest.mark.parametrize(
    ("answer", "found"),
    [(b"\x1b[?62;4;22c", b"62 4 22"), (b"\x1b[?1;2c", b"1 2"), (b"\x1b[?6c", b"6"), (b"no idea\x1b[?64;4c", b"64 4")],
)
def test_the_answer_is_read_not_shown_and_nothing_behind_it_is_taken(answer: bytes, found: bytes) -> None:
    terminal = Terminal(ASK + SHOW + READ)
    try:
        assert terminal.wait_for(rb"\x1b\[c")
        terminal.type(answer + b"left\n")
        assert terminal.wait_for(rb"found ([^\r]*)\r")[1] == found
        assert terminal.wait_for(rb"read ('[^\r]*')\r")[1] == rb"'left\n'"
        assert b"[?" not in terminal.screen
        assert terminal.is_as_usual()
    finally:
        terminal.close()


def test_a_terminal_that_does_not_answer_is_left_alone_after_a_second_and_as_it_was() -> None:
    terminal = Terminal(ASK + SHOW + READ)
    try:
        assert terminal.wait_for(rb"\x1b\[c")
        assert terminal.wait_for(rb"found\r")
        terminal.type(b"left\n")
        assert terminal.wait_for(rb"read ('[^\r]*')\r")[1] == rb"'left\n'"
        assert terminal.is_as_usual()
    finally:
        terminal.close()


@pytest.mark.parametrize("ahead", [b"left\n", b"le"])
def test_who_typed_ahead_loses_nothing_and_is_not_asked(ahead: bytes) -> None:
    wait = "print('ready', flush=True); import time; time.sleep(1); "
    terminal = Terminal(ASK + wait + SHOW + READ)
    try:
        assert terminal.wait_for(rb"ready")
        terminal.type(ahead)
        assert terminal.wait_for(rb"found\r")
        terminal.type(b"" if ahead.endswith(b"\n") else b"ft\n")
        assert terminal.wait_for(rb"read ('[^\r]*')\r")[1] == rb"'left\n'"
        assert b"\x1b[c" not in terminal.screen
    finally:
        terminal.close()


def test_a_process_in_the_background_does_not_ask() -> None:
    inner = f"subprocess.run([sys.executable, '-c', {ASK + SHOW!r}], process_group=0)"
    terminal = Terminal(f"import subprocess, sys; {inner}")
    try:
        assert terminal.wait_for(rb"found\r")
        assert b"\x1b[c" not in terminal.screen
    finally:
        terminal.close()


def test_what_is_no_terminal_is_not_asked() -> None:
    read, write = os.pipe()
    try:
        assert ask_attributes(read, write, 0.1) == []
        assert not select.select([read], [], [], 0)[0]
    finally:
        os.close(read)
        os.close(write)


PLAY = """
import sys
from vlgym.terminal_pictures import choose_protocol
print("protocol", choose_protocol("auto", sys.stdout, {"TERM": "xterm-256color"}), flush=True)
print("protocol", choose_protocol("auto", sys.stdout, {"TERM": "xterm-256color"}), flush=True)
"""


@pytest.mark.parametrize(("answer", "protocol"), [(b"\x1b[?62;4c", b"sixel"), (b"\x1b[?64;14;22c", b"blocks")])
def test_a_terminal_of_no_name_gets_sixels_where_it_says_that_it_shows_them_and_is_asked_once(
    answer: bytes, protocol: bytes
) -> None:
    terminal = Terminal(PLAY)
    try:
        assert terminal.wait_for(rb"\x1b\[c")
        terminal.type(answer)
        assert terminal.wait_for(rb"protocol (\w+)\r\nprotocol \1\r")[1] == protocol
        assert terminal.screen.count(b"\x1b[c") == 1
    finally:
        terminal.close()

"""Pictures in the terminal: which one a stream gets, and what is written."""

import contextlib
import fcntl
import io
import os
import re
import struct
import subprocess
import sys
import termios

import numpy as np
import pytest

from vlgym.play.human import choose_protocol, show_picture


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_picture_is_drawn_in_a_terminal_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.__stdin__", Screen())
    for module in ("sixel", "tgp"):
        monkeypatch.setattr(f"textual_image.renderable.{module}.query_terminal_support", lambda: False)
    assert choose_protocol("auto", io.StringIO()) == "none"
    assert choose_protocol("auto", Screen()) == "blocks"
    assert choose_protocol("sixel", io.StringIO()) == "sixel"
    monkeypatch.setattr("textual_image.renderable.sixel.query_terminal_support", lambda: True)
    assert choose_protocol("auto", Screen()) == "sixel"
    monkeypatch.setenv("NO_COLOR", "1")
    assert choose_protocol("auto", Screen()) == "none"
    monkeypatch.delenv("NO_COLOR")

    image = np.zeros((128, 128, 3), np.uint8)
    image[64:] = (255, 0, 0)
    drawn = {}
    for protocol in ("none", "blocks", "sixel"):
        screen = Screen()
        show_picture(image, protocol, screen)
        drawn[protocol] = screen.getvalue()
    assert drawn["none"] == ""
    assert "\x1bP" in drawn["sixel"]
    lines = re.sub(r"\x1b\[[0-9;]*m", "", drawn["blocks"]).splitlines()
    assert {len(line) for line in lines} == {64}
    assert "38;2;0;0;0;48;2;0;0;0m" in drawn["blocks"].splitlines()[0]
    assert "38;2;255;0;0;48;2;255;0;0m" in drawn["blocks"].splitlines()[-1]


DRAW = """
import sys, numpy as np
from vlgym.play.human import show_picture
show_picture(np.zeros((8, 8, 3), np.uint8), "blocks", sys.stdout)
"""


def test_a_terminal_that_does_not_tell_its_size_gets_the_picture_alone() -> None:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen([sys.executable, "-c", DRAW], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    output = b""
    with contextlib.suppress(OSError):  # the end of the process
        while part := os.read(ours, 65_536):
            output += part
    os.close(ours)
    assert process.wait(60) == 0
    assert "▀" in output.decode() or "▄" in output.decode()
    assert b"Traceback" not in output

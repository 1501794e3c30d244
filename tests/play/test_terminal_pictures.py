"""Pictures in the terminal: which one a stream gets, and what is written."""

import io
import re

import numpy as np
import pytest
from test_terminal import run_in_terminal

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
    output = run_in_terminal(["-c", DRAW], 80).decode()
    assert "▀" in output or "▄" in output
    assert "Traceback" not in output

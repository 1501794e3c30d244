"""Pictures in the terminal: what each protocol writes, read back, and which one a terminal gets."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest

from vlgym.rendering import decode_png
from vlgym.terminal_pictures import CELL, choose_protocol, draw_picture, fit_cells, show_picture


class Screen(io.StringIO):
    """A stream that is a terminal, or is not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def four_colours(width: int = 12, height: int = 8) -> np.ndarray:
    image = np.zeros((height, width, 3), np.uint8)
    image[: height // 2, : width // 2] = (255, 0, 0)
    image[: height // 2, width // 2 :] = (0, 255, 0)
    image[height // 2 :, : width // 2] = (0, 0, 255)
    image[height // 2 :, width // 2 :] = (255, 255, 255)
    return image


def noise() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("environ", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, "iterm"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "mlterm-256color"}, "sixel"),
        ({"TERM": "xterm-256color"}, "blocks"),
        ({"TERM": "screen-256color", "KITTY_WINDOW_ID": "1"}, "blocks"),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux"}, "blocks"),
        ({"TERM": "dumb"}, "none"),
        ({}, "none"),
        ({"TERM": "xterm-kitty", "NO_COLOR": "1"}, "none"),
    ],
)
def test_a_terminal_gets_the_protocol_that_its_variables_name(environ: dict[str, str], protocol: str) -> None:
    assert choose_protocol("auto", Screen(True), environ, lambda: False) == protocol
    assert choose_protocol("auto", Screen(False), environ, lambda: False) == "none"
    assert choose_protocol("sixel", Screen(False), environ, lambda: False) == "sixel"  # who asks for it gets it


def test_a_terminal_is_asked_only_where_its_variables_name_no_protocol() -> None:
    asked = []

    def query() -> bool:
        asked.append(environ)
        return True

    for environ, terminal in (
        ({"TERM": "xterm-kitty"}, True), ({"TERM": "foot"}, True), ({"TERM": "tmux-256color"}, True),
        ({"TERM": "dumb"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, True), ({"TERM": "xterm"}, False),
        ({"TERM": "xterm"}, True),
    ):  # fmt: skip
        protocol = choose_protocol("auto", Screen(terminal), environ, query)
    assert asked == [{"TERM": "xterm"}]
    assert protocol == "sixel"


@pytest.mark.parametrize(("encoding", "drawn"), [("ascii", "none"), ("latin-1", "none"), ("utf-8", "blocks")])
def test_an_encoding_without_the_half_block_gets_no_blocks_but_pictures_all_the_same(encoding: str, drawn: str) -> None:
    class Encoded(Screen):
        pass

    Encoded.encoding = encoding  # type: ignore[assignment,misc]
    for term in ("xterm", "tmux"):
        assert choose_protocol("auto", Encoded(True), {"TERM": term}, lambda: False) == drawn
    assert choose_protocol("auto", Encoded(True), {"TERM": "xterm-kitty"}, lambda: False) == "kitty"


@pytest.mark.parametrize(
    ("size", "columns", "cells"),
    [
        ((100, 100), 200, (64, 32)),  # both bounds
        ((100, 100), 20, (20, 10)),  # a narrow terminal
        ((200, 50), 64, (64, 8)),  # a wide picture: the columns bind
        ((50, 200), 64, (16, 32)),  # a high one: the rows bind
        ((1000, 1), 10, (10, 1)),
    ],
)
def test_a_picture_keeps_its_shape_in_cells_twice_as_high_as_wide(size, columns, cells) -> None:
    assert fit_cells(*size, columns) == cells


def test_kitty_gets_the_whole_file_in_pieces_of_4096_letters() -> None:
    image = noise()
    text = draw_picture(image, "kitty", 40)
    pieces = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", text)
    assert len(pieces) > 2
    assert "".join(f"\x1b_G{keys};{data}\x1b\\" for keys, data in pieces) + "\n" == text
    assert pieces[0][0] == "a=T,f=100,q=2,c=40,r=13,m=1"
    assert [keys for keys, _ in pieces[1:]] == ["m=1"] * (len(pieces) - 2) + ["m=0"]
    assert all(len(data) <= 4096 for _, data in pieces)
    assert np.array_equal(decode_png(base64.b64decode("".join(data for _, data in pieces))), image)


def test_iterm_gets_the_whole_file_with_its_size() -> None:
    image = noise()
    found = re.fullmatch(
        r"\x1b\]1337;File=inline=1;size=(\d+);width=40;height=13;preserveAspectRatio=1:([^\a]*)\a\n",
        draw_picture(image, "iterm", 40),
    )
    assert found is not None
    data = base64.b64decode(found[2])
    assert len(data) == int(found[1])
    assert np.array_equal(decode_png(data), image)


def read_sixels(text: str) -> np.ndarray:
    """A small reader of sixels: colours, counted letters, `$` and `-`."""
    found = re.fullmatch(r'\x1bP0;1q"1;1;(\d+);(\d+)(.*)\x1b\\\n', text)
    assert found is not None
    width, height = int(found[1]), int(found[2])
    image, drawn = np.zeros((height, width, 3), np.uint8), np.zeros((height, width), int)
    palette: dict[int, tuple[int, ...]] = {}
    x = y = colour = 0
    for part in re.findall(r"#\d+;2;\d+;\d+;\d+|#\d+|!\d+[?-~]|[?-~]|[$-]", found[3]):
        if part[0] == "#":
            number, *rest = map(int, part[1:].split(";"))
            colour = number
            if rest:
                palette[number] = tuple(round(255 * value / 100) for value in rest[1:])
        elif part in "$-":
            x, y = 0, y + 6 * (part == "-")
        else:
            count, letter = (int(part[1:-1]), part[-1]) if part[0] == "!" else (1, part)
            for row in range(6):
                if (ord(letter) - 63) >> row & 1:
                    image[y + row, x : x + count] = palette[colour]
                    drawn[y + row, x : x + count] += 1
            x += count
    assert (drawn == 1).all()  # every pixel once
    return image


def test_sixels_read_back_are_the_picture_in_the_size_of_its_cells() -> None:
    image = read_sixels(draw_picture(four_colours(), "sixel", 6))
    width, height = 6 * CELL[0], 2 * CELL[1]
    assert image.shape == (height, width, 3)
    assert np.array_equal(image, four_colours(width, height))


def test_sixels_of_many_colours_are_close_to_the_picture() -> None:
    smooth = np.broadcast_to(np.linspace(0, 255, 64)[None, :, None], (32, 64, 3)).astype(np.uint8)
    image = read_sixels(draw_picture(smooth, "sixel", 8))
    assert np.abs(image.astype(int) - smooth.repeat(1, 0)[: image.shape[0], : image.shape[1]].astype(int)).mean() < 3


def test_half_blocks_carry_the_upper_pixel_as_letter_and_the_lower_as_ground(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = draw_picture(four_colours(2, 2), "blocks", 2)
    assert text.count("\n") == 1
    cells = re.findall(r"\x1b\[38;2;(\d+);(\d+);(\d+);48;2;(\d+);(\d+);(\d+)m(▀+)", text)
    assert cells == [("255", "0", "0", "0", "0", "255", "▀"), ("0", "255", "0", "255", "255", "255", "▀")]


@pytest.mark.parametrize("width", [1, 7, 40, 80, 300])
def test_half_blocks_never_pass_the_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    for line in draw_picture(noise(), "blocks", width).splitlines():
        assert 0 < len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= min(width, 64)


def test_nothing_is_written_where_pictures_are_not_wanted() -> None:
    screen = Screen(True)
    show_picture(noise(), "none", screen)
    assert screen.getvalue() == ""

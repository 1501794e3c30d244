"""The same page gives the same bytes: in another browser, after other pages, and whatever it tries to see."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from vlgym_webui.browser import Browser, Render
from vlgym_webui.steps import Interaction, Step

from vlgym.chromium import Limits

sys.path.insert(0, str(Path(__file__).parent))
from page_programs import PROBES, write_program

CLICKS = tuple(Interaction(name, (Step("click", name),)) for name in ("button", ".go"))
NUMBERS = tuple(range(5))


@pytest.fixture(scope="module")
def browsers() -> Iterator[tuple[Browser, Browser]]:
    """Two browsers without limits on time, whose outcome must not depend on how busy the machine is."""
    pair = Browser(Limits(wall_s=100, cpu_s=100)), Browser(Limits(wall_s=100, cpu_s=100))
    yield pair
    for browser in pair:
        browser.close()


def see(browser: Browser, number: int) -> Render:
    render = browser.render(write_program(number), CLICKS, (640, 480))
    assert render.failure is None
    return render


def test_programs_that_look_for_clock_and_chance_see_the_same_in_every_browser_and_after_others(
    browsers: tuple[Browser, Browser],
) -> None:
    one, other = browsers
    mixed = list(NUMBERS)
    random.Random(1).shuffle(mixed)
    first = {number: see(one, number) for number in NUMBERS}
    again = {number: see(other, number) for number in mixed}
    assert [number for number in NUMBERS if first[number] != again[number]] == []


def test_a_link_that_was_clicked_in_one_page_is_not_visited_in_the_next(browsers: tuple[Browser, Browser]) -> None:
    css = "a { color: blue } a:visited { color: red }"
    page = {"index.html": f"<!DOCTYPE html><style>{css}</style><body><a class='go' href='#'>link</a></body>".encode()}
    before, after = (browsers[0].render(page, (CLICKS[1],)) for _ in range(2))
    assert after.pictures == before.pictures


def test_the_programs_try_each_way_at_least_once_in_three_hundred() -> None:
    written = b"".join(b"".join(write_program(number).values()) for number in range(300)).decode()
    assert [probe for probe in PROBES if probe not in written] == []


def test_an_animated_picture_is_shown_at_its_beginning(browsers: tuple[Browser, Browser]) -> None:
    import base64
    import io

    from PIL import Image

    buffer = io.BytesIO()
    frames = [Image.new("RGB", (40, 40), colour) for colour in ("red", "lime", "blue")]
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=20, loop=0)
    source = base64.b64encode(buffer.getvalue()).decode()
    page = f"<!DOCTYPE html><body style='margin:0'><img src='data:image/gif;base64,{source}'></body>".encode()
    waits = tuple(Interaction("wait", (Step("wait", wait_ms=130),)) for _ in range(2))
    render = browsers[0].render({"index.html": page}, waits, (200, 200))
    assert len(set(render.pictures)) == 1
    with Image.open(io.BytesIO(render.pictures[0] or b"")) as picture:
        assert picture.convert("RGB").getpixel((20, 20)) == (255, 0, 0)

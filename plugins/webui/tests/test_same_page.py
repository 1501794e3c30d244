"""The same page gives the same bytes: in another browser, after other pages, and whatever it tries to see."""

from __future__ import annotations

import base64
import io
import signal
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from PIL import Image
from vlgym_webui.browser import Browser, Render
from vlgym_webui.server import PageServer
from vlgym_webui.steps import Interaction, Step

from vlgym.browser.chromium import Limits

sys.path.insert(0, str(Path(__file__).parent))
from browser_processes import find
from page_programs import write_program

CLICKS = tuple(Interaction(name, (Step("click", name),)) for name in ("button", ".go"))
NUMBERS = tuple(range(3))


def see(browser: Browser, number: int) -> Render:
    render = browser.render(write_program(number), CLICKS, (640, 480))
    assert render.failure is None
    return render


def test_programs_that_look_for_clock_and_chance_see_the_same_in_every_browser_and_after_others(
    unhurried: Browser,
) -> None:
    other = Browser(unhurried.limits)
    try:
        first = {number: see(unhurried, number) for number in NUMBERS}
        again = {number: see(other, number) for number in reversed(NUMBERS)}
    finally:
        other.close()
    assert [number for number in NUMBERS if first[number] != again[number]] == []


def test_the_icon_is_asked_for_once_and_before_the_first_page_however_late_it_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a page loads, its clock stands still for, and then moves by 10 ms."""
    asked = []
    answer = PageServer.answer

    def answer_late(server: PageServer, address: str) -> tuple[int, str, bytes]:
        asked.append(urlsplit(address).path)
        if asked[-1] == "/favicon.ico":
            time.sleep(0.5)
        return answer(server, address)

    monkeypatch.setattr(PageServer, "answer", answer_late)
    browser = Browser(Limits(wall_s=100, cpu_s=100))
    try:
        assert asked.count("/favicon.ico") == 1
        asked.clear()
        for _ in range(3):
            assert browser.render({"index.html": b"<!DOCTYPE html><p>page"}).failure is None
        assert asked == ["/"] * 3
    finally:
        browser.close()


class LateFrames(Browser):
    """A browser that gets no frame from a click until the page's clock has moved on, as on a very busy machine."""

    intact = True  # its stopped process is no loss

    def cdp(self, command: str, **arguments: Any) -> dict[str, Any]:
        drawing = find(self, "--type=gpu-process")
        if arguments.get("type") == "mouseReleased":
            drawing.send_signal(signal.SIGSTOP)
        elif "vlgymHarness.rest(" in arguments.get("expression", ""):
            drawing.send_signal(signal.SIGCONT)
        return super().cdp(command, **arguments)


def test_timers_after_a_click_run_on_time_however_late_its_frame_is(unhurried: Browser) -> None:
    script = """
    const text = document.querySelector('p'), late = [];
    let ticks = 0, last = Date.now();
    (function again() {
      const now = Date.now();
      if (now - last > 10) late.push(now - last);
      last = now; ticks += 1; text.textContent = `${ticks} ticks, late: ${late}`;
      setTimeout(again, 0);
    })();
    """
    page = {"index.html": f"<!DOCTYPE html><p>-</p><button>press</button><script>{script}</script>".encode()}
    browser = LateFrames(Limits(wall_s=100, cpu_s=100))
    try:
        busy = browser.render(page, CLICKS[:1] * 2)
    finally:
        browser.close()
    quiet = unhurried.render(page, CLICKS[:1] * 2)
    assert [table[0].styles["text"] for table in quiet.tables if table] == [
        f"{ticks} ticks, late:" for ticks in (254, 504, 754)
    ]
    assert busy == quiet


def test_an_animated_picture_is_shown_at_its_beginning(unhurried: Browser) -> None:
    buffer = io.BytesIO()
    frames = [Image.new("RGB", (40, 40), colour) for colour in ("red", "lime", "blue")]
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=20, loop=0)
    source = base64.b64encode(buffer.getvalue()).decode()
    page = f"<!DOCTYPE html><body style='margin:0'><img src='data:image/gif;base64,{source}'></body>".encode()
    waits = tuple(Interaction("wait", (Step("wait", wait_ms=130),)) for _ in range(2))
    render = unhurried.render({"index.html": page}, waits, (200, 200))
    assert len(set(render.pictures)) == 1
    with Image.open(io.BytesIO(render.pictures[0] or b"")) as picture:
        assert picture.convert("RGB").getpixel((20, 20)) == (255, 0, 0)

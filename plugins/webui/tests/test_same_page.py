"""The same page gives the same bytes in another browser, after others, and whatever it tries to see."""

import base64
import io
from pathlib import Path

from PIL import Image
from vlgym_webui.browser import Browser
from vlgym_webui.project import Interaction, Step

CLICKS = tuple(Interaction(name, (Step("click", name),)) for name in ("button", ".go"))
HEAD, _, STATEMENTS = (Path(__file__).parent / "probes.js").read_text().partition("\n\n")
PROBES = STATEMENTS.splitlines()


def write_program(probes: list[str]) -> dict[str, bytes]:
    body = "<p>-</p><button>press</button><a class='go' href='#'>link</a>"
    tried = [f"try {{ {probe} }} catch (error) {{ say(error.name); }}" for probe in probes]
    css = "p { font: 11px monospace; overflow-wrap: anywhere } a:visited { background: red }"
    page = f"<!DOCTYPE html><style>{css}</style><body>{body}<script src='script.js'></script></body>"
    return {"index.html": page.encode(), "script.js": "\n".join([HEAD, *tried]).encode()}


def test_programs_that_look_for_clock_and_chance_see_the_same_in_every_browser_and_after_others(unhurried):
    """Each program has half of the probes; another browser renders them in the reverse order."""
    programs = [write_program(PROBES[start::2]) for start in range(2)]
    other = Browser(unhurried.limits)
    try:
        first = [unhurried.render(program, CLICKS, (640, 480)) for program in programs]
        again = [other.render(program, CLICKS, (640, 480)) for program in reversed(programs)]
    finally:
        other.close()
    assert [render.failure for render in first] == [None] * 2
    assert first == again[::-1]


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

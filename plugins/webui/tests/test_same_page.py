"""The same page gives the same bytes: in another browser, after other pages, and whatever it tries to see."""

from __future__ import annotations

import base64
import io

from PIL import Image
from vlgym_webui.browser import Browser
from vlgym_webui.project import Interaction, Step

CLICKS = tuple(Interaction(name, (Step("click", name),)) for name in ("button", ".go"))
PROBES = (
    "say(Intl.DateTimeFormat('en', {dateStyle: 'full', timeStyle: 'full'}).format())",
    "say(Intl.DateTimeFormat().resolvedOptions().timeZone, Intl.DateTimeFormat().resolvedOptions().locale)",
    "say(typeof Temporal === 'undefined' ? 'none' : Temporal.Now.instant().toString())",
    "say(new Date().toString(), Date.now(), new (Date.bind(null))().getTime())",
    "say(document.lastModified)",
    "say(new File(['x'], 'x').lastModified)",
    "say(new Event('x').timeStamp); addEventListener('click', e => say(e.timeStamp, e.isTrusted), true)",
    "say(performance.timeOrigin, Performance.prototype.now.call(performance))",
    "say(JSON.stringify(performance.timing), JSON.stringify(performance))",
    "say(performance.getEntries().length); performance.mark('m'); say(performance.getEntriesByName('m')[0].startTime)",
    "try { say(URL.createObjectURL(new Blob(['x']))) } catch (e) { say(e.name) }",
    "say(navigator.connection ? [navigator.connection.rtt, navigator.connection.downlink] : 'none')",
    "say(performance.memory ? performance.memory.usedJSHeapSize : 'none')",
    "say(Math.random(), Math.random())",
    "say(crypto.getRandomValues(new Uint32Array(2)).join())",
    "say(typeof crypto.randomUUID === 'function' ? crypto.randomUUID() : 'none')",
    "{ const c = new MessageChannel(); let n = 0; c.port1.onmessage = () => { n += 1; show('channel', n); "
    "c.port2.postMessage(0); }; c.port2.postMessage(0); }",
    "{ let n = 0; addEventListener('message', () => { n += 1; show('message', n); postMessage(0, '*'); }); "
    "postMessage(0, '*'); }",
    "{ let n = 0; (function again() { n += 1; show('timers', n); setTimeout(again, 0); })(); }",
    "{ let n = 0; (function again(t) { n += 1; show('frames', n + ' ' + Math.round(t)); "
    "requestAnimationFrame(again); })(0); }",
    "if (window.scheduler) { let n = 0; (function again() { n += 1; show('tasks', n); "
    "scheduler.postTask(again); })(); }",
    "{ const begun = Date.now(); let n = 0; while (n < 300000) n += 1; say(Date.now() - begun); }",
    "try { const w = new Worker('data:text/javascript,postMessage(Date.now())'); w.onmessage = e => say(e.data); "
    "w.onerror = () => say('refused') } catch (e) { say(e.name) }",
    "{ const f = document.createElement('iframe'); document.body.append(f); const w = f.contentWindow; "
    "say(new w.Date().getTime(), w.performance.now(), w.Math.random(), "
    "w.crypto.getRandomValues(new w.Uint8Array(2)).join()); f.remove(); }",
    "{ const a = document.body.animate([{opacity: 0.9}, {opacity: 1}], 3000); setTimeout(() => "
    "say(a.currentTime, document.timeline.currentTime, a.startTime, getComputedStyle(document.body).opacity), 250); }",
    "fetch('script.js').then(r => r.text()).then(t => say('fetched', t.length > 0, performance.now()))",
    "{ const i = new Image(); i.onload = i.onerror = e => say(e.type, Math.round(performance.now())); "
    "i.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs='; }",
    "document.fonts.ready.then(() => say('fonts'))",
    "say(localStorage.length, sessionStorage.length, document.cookie, window.name, history.length); "
    "localStorage.a = 1; document.cookie = 'a=1; max-age=9999'; window.name = 'kept';",
    "document.body.insertAdjacentHTML('beforeend', '<a href=\"#\">here</a> <a href=\"/other\">there</a>'); "
    "history.replaceState(0, '', '/other'); history.replaceState(0, '', '/');",
    "say(screen.width, screen.height, devicePixelRatio, navigator.language, navigator.languages, document.hasFocus())",
    "requestIdleCallback(d => say('idle', d.timeRemaining(), d.didTimeout))",
    "{ const o = new PerformanceObserver(l => say('observed', l.getEntries().length)); "
    "try { o.observe({type: 'paint', buffered: true}) } catch (e) { say(e.name) } }",
    "new Blob(['abc']).text().then(t => say(t, performance.now()))",
)  # fmt: skip
"""Statements that try to see clock, chance, machine or another episode; `say` adds words to the page, `show` replaces
those of a name."""
HEAD = """
const words = [], named = {};
const put = () => {
  document.querySelector('p').textContent = [...words, ...Object.entries(named).flat()].join(' | ');
};
const say = (...values) => { words.push(values.join(', ')); put(); };
const show = (name, value) => { named[name] = value; put(); };
"""


def write_program(probes: tuple[str, ...]) -> dict[str, bytes]:
    body = "<p>-</p><button>press</button><a class='go' href='#'>link</a>"
    script = HEAD + "\n".join(f"try {{ {probe} }} catch (error) {{ say(error.name); }}" for probe in probes)
    css = "p { font: 11px monospace; overflow-wrap: anywhere } a:visited { background: red; color: lime }"
    page = f"<!DOCTYPE html><html><head><style>{css}</style></head><body>{body}<script src='script.js'></script></body>"
    return {"index.html": page.encode(), "script.js": script.encode()}


def test_programs_that_look_for_clock_and_chance_see_the_same_in_every_browser_and_after_others(
    unhurried: Browser,
) -> None:
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

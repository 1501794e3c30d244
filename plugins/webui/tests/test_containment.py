"""Hostile pages: what they try has no effect, is counted, and leaves the pool healthy."""

import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from vlgym_webui.browser import MOST_COUNTED, Browser, Render
from vlgym_webui.project import Interaction, Step

from vlgym.browser.chromium import Limits

Draw = Callable[..., Render]
BODY = "<h1>still here</h1>"
FOLDER = Path(__file__).parent
# Ways to reach for a server or a file of this machine.
MARKUP, SCRIPTS = ((FOLDER / name).read_text().splitlines()[1:] for name in ("hostile.html", "hostile.js"))


@pytest.fixture
def port() -> Iterator[int]:
    """A port of loopback, where nobody may have knocked in the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.fixture
def attack(render: Draw) -> Iterator[Draw]:
    """Render a hostile page; afterwards the pool must render a harmless one."""
    yield partial(render, BODY)
    healthy = render("<h1>fine</h1>")
    assert (healthy.failure, texts(healthy), healthy.blocked) == (None, ["fine"], {})


def texts(result: Render, moment: int = 0) -> list[str]:
    return [element.styles["text"] for element in result.tables[moment] or ()]


def test_an_endless_loop_in_a_handler_loses_only_the_interactions(attack: Draw) -> None:
    click = Interaction("click", (Step("click", "h1"),))
    result = attack("document.querySelector('h1').onclick = () => { for (;;) ; };", click, click)
    assert (result.failure, result.problems) == ("timeout", {0: "timeout", 1: "timeout"})
    assert texts(result) == ["still here"]


def test_a_storm_of_alerts_shows_none_and_is_counted(attack: Draw) -> None:
    storm = "for (let i = 0; i < 5000; i += 1) alert(i);"
    result = attack(f"{storm} if (confirm('?')) document.title = prompt('name', 'x');")
    assert (result.failure, texts(result)) == (None, ["still here"])
    assert result.blocked == {"dialog": 5001}  # nobody said yes to the question


def test_an_endless_storm_of_alerts_ends_at_the_limit_of_processor_time() -> None:
    browser = Browser(Limits(wall_s=100, cpu_s=1, memory_mb=50_000))
    page = b"<!DOCTYPE html><html><body><script>while (true) alert(1);</script></body></html>"
    try:
        assert browser.render({"index.html": page}).failure == "timeout"
        assert not browser.alive
    finally:
        browser.close()


@pytest.mark.parametrize(
    ("markup", "scripts"),
    [
        (MARKUP, SCRIPTS),
        *(pytest.param([each], [], marks=pytest.mark.exhaustive) for each in MARKUP),
        *(pytest.param([], [each], marks=pytest.mark.exhaustive) for each in SCRIPTS),
    ],
)
def test_the_network_and_local_files_are_out_of_reach(calm, port, markup, scripts):
    """One page tries all ways; they are tried one by one, too."""
    script = "\n".join(f"try {{ (() => {{ {each} }})() }} catch (error) {{ 0 }}" for each in scripts)
    page = (BODY + "".join(markup), script)
    address = f"http://127.0.0.1:{port}/"
    result = calm(*(each.replace("URL", address).replace("PORT", str(port)) for each in page))
    assert result.tables[0] is not None
    name = Path("/etc/hostname")
    assert not name.exists() or name.read_text().strip() not in " ".join(texts(result))
    if markup and scripts:
        assert result.blocked["network"] >= 20
        assert result.blocked["local_file"] >= 1


@pytest.mark.parametrize("way", ["script", "header", "blank"])
def test_a_redirect_leads_nowhere_and_loses_the_page(calm, unhurried, port, monkeypatch, way):
    addresses: list[str] = []
    answer = unhurried.server.answer
    monkeypatch.setattr(unhurried.server, "answer", lambda wanted: addresses.append(wanted) or answer(wanted))
    address = "about:blank" if way == "blank" else f"http://127.0.0.1:{port}/"
    meta = f"<meta http-equiv='refresh' content='0; url={address}'>" if way == "header" else ""
    result = calm(BODY + meta, "" if meta else f"location.href = '{address}'")
    assert address not in addresses, "the page was not held back, but faster"
    assert (result.failure, result.tables[0]) == ("left_page", None)
    assert texts(calm("<h1>fine</h1>")) == ["fine"]


def test_leaving_by_a_click_loses_that_interaction_and_those_after_it(calm: Draw) -> None:
    stay, leave = (Interaction(name, (Step("click", name),)) for name in ("h1", "a"))
    result = calm(f"{BODY}<a href='http://example.com/'>away</a>", "", stay, leave, stay)
    assert (result.failure, result.problems) == ("left_page", {1: "left_page", 2: "left_page"})
    assert texts(result) == texts(result, 1) == ["still here", "away"]


def test_a_script_cannot_fetch_the_files_of_its_own_page(unhurried: Browser) -> None:
    """The arrival time of fetched files is left to chance, which the page would see."""
    script = """
      const told = [], heading = document.querySelector('h1');
      const tell = (word) => { told.push(word); heading.textContent = told.sort().join(', '); };
      fetch('data.txt').then(() => tell('fetched'), (error) => tell('fetch ' + error.name));
      const now = new XMLHttpRequest();
      now.open('GET', 'data.txt', false);
      try { now.send(); tell('read at once'); } catch (error) { tell('at once ' + error.name); }
      const later = new XMLHttpRequest();
      later.onload = () => tell('read later');
      later.onerror = () => tell('later refused');
      later.open('GET', 'data.txt');
      later.send();
      const source = new EventSource('data.txt');
      source.onopen = () => tell('opened');
      source.onerror = () => { source.close(); tell('source refused'); };
    """
    page = f"<!DOCTYPE html><html><body>{BODY}<script>{script}</script></body></html>"
    result = unhurried.render({"index.html": page.encode(), "data.txt": b"data"})
    refusals = "at once NetworkError, fetch TypeError, later refused, source refused"
    assert (result.failure, texts(result)) == (None, [refusals])
    assert result.blocked["network"] >= 4


def test_moving_in_the_page_loses_nothing_and_leads_to_no_file(calm: Draw) -> None:
    script = (
        "location.hash = 'part'; history.pushState(0, '', '/other');"
        "const a = document.createElement('a'); a.href = 'mailto:me@page.invalid'; a.click();"
        "location.href = 'file:///etc/hostname'"
    )
    result = calm(BODY, script)
    assert (result.failure, texts(result), result.blocked) == (None, ["still here"], {"local_file": 1})


def test_a_gigabyte_ends_in_a_memory_failure(attack: Draw) -> None:
    assert attack("window.keep = new Uint8Array(1 << 30).fill(1);").failure == "memory"


def test_too_many_elements_end_in_a_failure(attack: Draw) -> None:
    script = "for (let i = 0; i < 5000; i += 1) document.body.insertAdjacentHTML('beforeend', '<p>1</p>');"
    assert attack(script).failure == "too_many_elements"


def test_workers_downloads_and_pop_ups_are_refused_and_counted_and_webrtc_is_not_there(calm, unhurried):
    script = """
      const frame = document.createElement('iframe'), link = document.createElement('a');
      document.body.append(frame);
      document.querySelector('h1').textContent = [typeof RTCPeerConnection, typeof navigator.serviceWorker,
        typeof frame.contentWindow.navigator.serviceWorker];
      new Worker('script.js');
      link.href = 'data:text/plain,x'; link.download = 'x.txt'; link.click();
      for (let i = 0; i < 5; i += 1) window.open('about:blank');
    """
    result = calm(BODY, script)
    assert texts(result)[0] == "undefined,undefined,undefined"
    assert result.blocked == {"worker": 1, "download": 1, "popup": 5}
    assert len(unhurried.driver.window_handles) == 1


def test_nothing_of_ours_is_in_the_page(render: Draw) -> None:
    script = """
      const ours = Object.getOwnPropertyNames(window).filter((name) => {
        let value = null;
        try { value = window[name]; } catch { return false; }
        return /vlgym|^v[0-9a-f]{6}/.test(name) || (typeof value === 'function' && value.counts);
      });
      const symbols = Object.getOwnPropertySymbols(window).filter((symbol) => String(symbol).includes('vlgym'));
      document.querySelector('p').textContent = ours.length + symbols.length;
    """
    assert texts(render("<p></p>", script)) == ["0"]


def test_a_page_cannot_add_to_what_is_counted(calm: Draw) -> None:
    script = (
        'console.error("violates the following Content Security Policy directive");'
        'console.error("Uncaught Error"); for (let i = 0; i < 12000; i += 1) alert(i);'
        "for (const k of Object.getOwnPropertyNames(window)) { try { window[k].counts.network = 1e300; } catch {} }"
    )
    assert calm("<p>x</p>", script).blocked == {"dialog": MOST_COUNTED}


def test_what_a_page_says_of_itself_is_bounded(render: Draw) -> None:
    script = (
        "const i = document.querySelector('input'); i.className = i.placeholder = i.value = 'x'.repeat(1e6);"
        "i.style.fontFamily = '\"' + 'x'.repeat(1e6) + '\"';"
    )
    (element,) = render("<input>", script).tables[0]
    assert max(map(len, element.styles.values())) <= 2000


def test_nothing_is_stored_from_one_page_to_the_next(render: Draw) -> None:
    script = (
        "document.querySelector('p').textContent = "
        "[localStorage.length, document.cookie, sessionStorage.length, window.name].join('/');"
        "localStorage.a = sessionStorage.a = '1'; document.cookie = 'a=1; max-age=9999'; window.name = 'kept';"
    )
    assert [texts(render("<p></p>", script)) for _ in range(2)] == [["0//0/"]] * 2


def test_a_page_cannot_lie_about_its_elements(render: Draw) -> None:
    script = (
        "Element.prototype.getBoundingClientRect = () => new DOMRect(0, 0, 777, 777);"
        "window.getComputedStyle = () => ({getPropertyValue: () => 'rgb(1, 2, 3)'});"
        "Element.prototype.checkVisibility = () => true; document.querySelectorAll = () => [];"
    )
    (element,) = render("<h1 style='width: 50px'>true</h1>", script).tables[0]
    assert (element.box[2], element.styles["color"]) == (50, "rgb(0, 0, 0)")


@pytest.mark.parametrize(
    "script",
    [
        "JSON.stringify = () => '{\"network\": 1e999}'; Map.prototype.delete = null; Promise = null",
        "window.setTimeout = window.requestAnimationFrame = null; Date.now = null; performance.now = null",
        pytest.param("document.documentElement.remove()", marks=pytest.mark.exhaustive),
        pytest.param("document.open(); document.body", marks=pytest.mark.exhaustive),
        pytest.param("window.close()", marks=pytest.mark.exhaustive),
    ],
)
def test_a_page_that_breaks_its_own_ground_hurts_only_itself(attack: Draw, script: str) -> None:
    assert attack(script).failure in (None, "crash", "left_page", "timeout")

"""The browser that renders one page at a time, and survives hostile pages.

Its only network is a proxy on this machine, which serves one page from memory at
`http://page.invalid/` and answers 403 to everything else, loopback included, without opening a
connection. Each page gets a fresh browser context with a virtual clock, which moves on command and
stands still while anything is loading. A page that hangs or grows ends the browser: `alive` is
false then, and the pool starts another. Nothing of ours is in the page's reach.
"""

import base64
import binascii
import contextlib
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from typing import Any
from urllib.parse import unquote, urlsplit

from selenium.common.exceptions import WebDriverException

from vlgym.browser.chromium import DRIVER_ERRORS, BrowserPool, Chromium, Limits, ProcessGuard

from .aes import CSS_PROPERTIES, Table, read_table
from .project import Interaction, Step

ORIGIN = "http://page.invalid"  # `.invalid` is reserved and never resolves

_TYPES = {
    "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
    "webp": "image/webp", "ico": "image/x-icon", "json": "application/json", "woff2": "font/woff2",
}  # fmt: skip
_LOCAL = "'self' data: blob:"
_POLICY = (
    f"default-src 'none'; style-src {_LOCAL} 'unsafe-inline'; script-src {_LOCAL} 'unsafe-inline' 'unsafe-eval'; "
    f"img-src {_LOCAL}; font-src {_LOCAL}; media-src {_LOCAL}; connect-src blob:; form-action 'self'; "
    "frame-src 'none'; worker-src 'none'; object-src 'none'; base-uri 'none'; manifest-src 'none'; "
    "sandbox allow-scripts allow-same-origin allow-forms"
)


class PageServer(ThreadingHTTPServer):
    """Serves the files of one page at a time, on a socket that may belong to another network."""

    daemon_threads = True

    def __init__(self, listener: socket) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.files: Mapping[str, bytes] = {}  # of the page: path below the root -> contents
        self.icon_answered = threading.Event()  # the browser has asked for the page's icon
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def answer(self, address: str) -> tuple[int, str, bytes]:
        """Return status, content type and body for an absolute address."""
        parts = urlsplit(address)
        if f"{parts.scheme}://{parts.netloc}" != ORIGIN:
            return 403, "text/plain", b""
        path = unquote(parts.path).strip("/") or "index.html"
        body = self.files.get(path)
        if body is None:
            return 404, "text/plain", b""
        return 200, _TYPES.get(path.rsplit(".", 1)[-1].lower(), "application/octet-stream"), body


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: PageServer

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the browser was killed while it was answered
            super().handle()

    def do_GET(self) -> None:
        try:
            status, kind, body = self.server.answer(self.path)
        except ValueError:
            status, kind, body = 400, "text/plain", b""

        # No page may be kept, nor reach for anything else.
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", _POLICY)
        self.end_headers()
        self.wfile.write(body)
        if urlsplit(self.path).path == "/favicon.ico":
            self.server.icon_answered.set()

    def do_POST(self) -> None:
        # A form of the page may be sent to the page itself; its body is of no use here.
        self.close_connection = True
        self.do_GET()

    def refuse(self) -> None:
        self.close_connection = True
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    do_CONNECT = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = refuse

    def log_message(self, *args: object) -> None:
        """Say nothing: the certificate forbids output."""


SETTLE_MS = 1000  # by which the page's clock moves after loading and after every step
MOST_ELEMENTS = 1500  # displayed elements that are read; more make the page fail
MOST_COUNTED = 9999  # largest count of one kind of refused attempts
EPOCH_S = 1705320000  # seconds since 1970 on the page's clock at first: 15 January 2024, noon UTC

_WORLD = "vlgym"
_MOST_TASKS = 5000
_POLL_S, _ASKS_S = 0.004, 10.0
_ANOTHER_ANSWER = "new Promise(done => { const image = new Image(); image.onerror = done; image.src = 'later' })"
_NO_DOCUMENT = "{now: 0, loaded: false, where: location.origin, counts: {left_page: 0, download: 0}}"
_KINDS = ("network", "local_file", "dialog", "popup", "worker", "download", "script_error")
# Kind -> words of Chromium's log that tell of it; the first kind that fits counts.
_REFUSALS = {
    "dialog": ("allow-modals",),
    "popup": ("allow-popups", "Blocked opening"),
    "local_file": ("Not allowed to load local resource",),
    "worker": ('directive: "worker-src',),
    "download": ("allow-downloads",),
    "network": ("violates the following Content Security Policy directive",),
}

_SCRIPTS = Path(__file__).parent / "scripts"
_URL = re.compile(r"url\(\"([^\"]*)\"\)")
_SWITCHES = (
    "--disable-quic", "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows", "--block-new-web-contents", "--deny-permission-prompts",
    "--disable-notifications", "--disable-file-system", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--js-flags=--max-old-space-size=256 --random-seed=1705320000", "--blink-settings=imageAnimationPolicy=2",
    # No stage of drawing waits for a deadline: with the clock at rest it would never come.
    "--run-all-compositor-stages-before-draw", "--disable-new-content-rendering-timeout", "--disable-checker-imaging",
    "--disable-threaded-animation", "--disable-threaded-scrolling",
)  # fmt: skip


@dataclass(frozen=True)
class Render:
    """Result of rendering a page, initially and after each interaction."""

    tables: tuple[Table | None, ...]  # `None` where an interaction failed
    pictures: tuple[bytes | None, ...]  # PNG files
    failure: str | None = None  # timeout, memory, crash, left_page or too_many_elements
    problems: dict[int, str] = field(default_factory=dict)  # of interactions: hidden, ...
    blocked: dict[str, int] = field(default_factory=dict)  # refused attempts, counted
    views: tuple[tuple[float, float], ...] = ()  # scrolling of the document, x and y in pixels
    lost: bool = False  # another browser may render the page, which did nothing in excess


class PageFailure(Exception):
    """The page cannot be rendered any further; the argument is the failure's name."""


class StepFailure(Exception):
    """A step cannot be done; the argument is the reason."""


Look = tuple[Table | None, bytes | None, tuple[float, float]]
_NO_LOOK: Look = (None, None, (0.0, 0.0))


class Browser(Chromium):
    """A Chromium with a private page server; `limits` are of one page with its interactions."""

    apt = f"{Chromium.apt} fonts-liberation"

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._page_script = (_SCRIPTS / "page.js").read_text("utf-8")
        self._harness = (_SCRIPTS / "harness.js").read_text("utf-8")
        wanted = {"goog:loggingPrefs": {"browser": "ALL"}, "pageLoadStrategy": "none"}
        super().__init__("webui", proxy=0, switches=_SWITCHES, capabilities=wanted, fresh_tabs=True)
        self.server = PageServer(self.listeners[-1])
        try:
            self._ask_for_the_icon()
        except DRIVER_ERRORS:
            self.kill()  # it is found dead at its first page, and replaced

    def close(self) -> None:
        """End the browser and its server."""
        super().close()
        if os.getpid() == self.owner and hasattr(self, "server"):
            self.server.shutdown()
            self.server.server_close()

    def render(
        self,
        files: Mapping[str, bytes],
        interactions: Sequence[Interaction] = (),
        viewport: tuple[int, int] = (800, 600),
        *,
        annotated: bool = False,
    ) -> Render:
        """Load a page, do the interactions, and read elements and a picture before and after each.

        No page makes it raise; a page that passes a limit ends the browser. `annotated` reads the
        annotations and digests of the outer HTML of a target, too.
        """
        looks = [_NO_LOOK] * (1 + len(interactions))
        problems: dict[int, str] = {}
        blocked: dict[str, int] = {}
        failure = error_name = None
        self.server.files = files

        # A step that fails costs its interaction, a page that fails the rest, an error the browser.
        with ProcessGuard(self.process.pid, self.limits, lambda: self.intact) as guard:
            try:
                with self.tabs.open():
                    try:
                        self._open(viewport)
                        looks[0] = self._look(files, annotated)
                        for number, interaction in enumerate(interactions):
                            try:
                                for step in interaction.steps:
                                    self._do(step)
                                looks[number + 1] = self._look(files, annotated)
                            except StepFailure as problem:
                                problems[number] = str(problem)
                    except PageFailure as problem:
                        failure = str(problem)
                    blocked = self._count_blocked()
            except (*DRIVER_ERRORS, ValueError, KeyError, TypeError) as error:
                words = str(error).lower()
                error_name = "timeout" if "timed out" in words or "timeout" in words else "crash"

        # A page that used too much processor time or memory has itself to blame.
        blamed = guard.reason is not None and not guard.by_clock and guard.whole
        lost = not blamed and (error_name is not None or not self.intact)
        if guard.reason or error_name or lost:
            # The page's own act is the cause, even if a limit was passed later.
            failure = failure or guard.reason or error_name or "crash"
            self.kill()

        # Interactions that the failure left undone have it as their problem.
        tables, pictures, views = zip(*looks, strict=True)
        if failure:
            for number in range(len(interactions)):
                if tables[number + 1] is None:
                    problems.setdefault(number, failure)
        return Render(tables, pictures, failure, problems, blocked, views, lost)

    def _ask_for_the_icon(self) -> None:
        """Let Chromium request the icon, which it does once, before the first page."""
        self.server.files = {"index.html": b"<!DOCTYPE html><title>-</title>"}
        self.cdp("Page.navigate", url=f"{ORIGIN}/")
        # To leave before the answer arrives would make a later page ask again.
        if self.server.icon_answered.wait(_ASKS_S):
            self.cdp("Runtime.evaluate", expression=_ANOTHER_ANSWER, awaitPromise=True)

    def _open(self, viewport: tuple[int, int]) -> None:
        # The same window, place and language on every machine.
        size = {"width": viewport[0], "height": viewport[1]}
        self.cdp("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)
        self.cdp("Emulation.setTimezoneOverride", timezoneId="UTC")
        self.cdp("Emulation.setLocaleOverride", locale="en-US")
        self.cdp("Emulation.setFocusEmulationEnabled", enabled=True)

        # The harness lives in a world that the page cannot reach.
        self.cdp("Page.addScriptToEvaluateOnNewDocument", source=self._page_script)
        self.cdp("Page.addScriptToEvaluateOnNewDocument", source=self._harness, worldName=_WORLD)

        # The clock rests until the page asks for something.
        self.cdp("Animation.enable")
        self.cdp("Animation.setPlaybackRate", playbackRate=0)
        self.cdp("Emulation.setVirtualTimePolicy", policy="pause", initialVirtualTime=EPOCH_S)
        self._now = EPOCH_S * 1000
        self._world: int | None = None
        self._downloads = 0
        self.cdp("Page.navigate", url=f"{ORIGIN}/")
        self._settle(SETTLE_MS)

    def _count_blocked(self) -> dict[str, int]:
        """Count the browser's own refusals, which only its log tells, and downloads."""
        counts = dict.fromkeys(_KINDS, 0)
        for entry in self.driver.execute("getLog", {"type": "browser"})["value"]:
            kind = name_refusal(str(entry.get("source", "")), str(entry.get("message", "")))
            if kind:
                counts[kind] += 1
        counts["download"] += self._downloads
        return {kind: min(count, MOST_COUNTED) for kind, count in counts.items() if count}

    def _do(self, step: Step) -> None:
        if step.kind == "wait":
            self._settle(step.wait_ms)
            return

        # Every other step begins with the pointer on an element that is to be seen.
        place = self._ask("locate", step.selector)
        if "problem" in place:
            raise StepFailure(f"{place['problem']}: {step.selector}")
        where = {"x": place["x"], "y": place["y"]}
        self.cdp("Input.dispatchMouseEvent", type="mouseMoved", **where)

        # A click also gives the element the keyboard.
        if step.kind in ("click", "type"):
            for kind in ("mousePressed", "mouseReleased"):
                self.cdp("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **where)
        if step.kind == "type":
            for character in step.text:
                self._press(character)
        self._settle(SETTLE_MS)

    def _press(self, character: str) -> None:
        enter = character == "\n"
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13} if enter else {"key": character}
        self.cdp("Input.dispatchKeyEvent", type="keyDown", **key, text="\r" if enter else character)
        self.cdp("Input.dispatchKeyEvent", type="keyUp", **key)

    def _settle(self, duration_ms: int) -> None:
        """Move the page's clock on and let everything come to rest."""
        self._now += duration_ms
        self.cdp(
            "Emulation.setVirtualTimePolicy",
            policy="pauseIfNetworkFetchesPending",
            budget=duration_ms,
            maxVirtualTimeTaskStarvationCount=_MOST_TASKS,
        )
        while not self._has_arrived():
            time.sleep(_POLL_S)
        self._ask("rest")

    def _has_arrived(self) -> bool:
        """True if the page is loaded and its clock has moved; refuse a page that leaves."""
        state = self._ask("state")
        self._downloads = max(self._downloads, int(state["counts"]["download"]))
        here = state["where"] == ORIGIN
        if state["counts"]["left_page"] or not (here or self._is_coming()):
            raise PageFailure("left_page")
        return here and state["now"] >= self._now and state["loaded"]

    def _is_coming(self) -> bool:
        """True if the page is still to take the empty tab's place."""
        history = self.cdp("Page.getNavigationHistory")
        return bool(history["currentIndex"] == len(history["entries"]) - 1)

    def _look(self, files: Mapping[str, bytes], annotated: bool) -> Look:
        answer = self._ask("read", list(CSS_PROPERTIES), MOST_ELEMENTS, annotated)
        if answer["where"] != ORIGIN:
            raise PageFailure("left_page")
        if answer["left_out"]:
            raise PageFailure("too_many_elements")
        for row in answer["rows"]:
            for name in ("src", "background-image"):
                row["styles"][name] = name_contents(row["styles"][name], files)
        shot = self.cdp("Page.captureScreenshot", format="png", optimizeForSpeed=True)["data"]
        x, y = map(float, answer["view"])
        return read_table(answer["rows"]), base64.b64decode(shot), (x, y)

    def _ask(self, function: str, *arguments: Any) -> Any:
        """Call a function of `harness.js` in its world, which is another one after a reload."""
        call = f"vlgymHarness.{function}({', '.join(map(json.dumps, arguments))})"
        if self._world is not None:
            with contextlib.suppress(WebDriverException):
                return self._evaluate(call, self._world)
        frame = self.cdp("Page.getFrameTree")["frameTree"]["frame"]["id"]
        made = self.cdp("Page.createIsolatedWorld", frameId=frame, worldName=_WORLD)
        self._world = int(made["executionContextId"])
        call = f"typeof vlgymHarness === 'undefined' ? {_NO_DOCUMENT} : {call}"
        return self._evaluate(call, self._world)

    def _evaluate(self, expression: str, world: int) -> Any:
        how = {"awaitPromise": True, "returnByValue": True, "contextId": world}
        answer = self.cdp("Runtime.evaluate", expression=expression, **how)
        if "exceptionDetails" in answer:
            details = json.dumps(answer["exceptionDetails"])
            if "SyntaxError" in details and "querySelector" in details:
                raise StepFailure("bad_selector")
            raise PageFailure("crash")
        return answer["result"].get("value")


def name_refusal(source: str, message: str) -> str | None:
    """Return the kind of refusal that an entry of the browser's log tells of, or `None`."""
    if source == "console-api":  # where pages write
        return None
    for kind, words in _REFUSALS.items():
        if any(word in message for word in words):
            return kind
    return "script_error" if source == "javascript" and "Uncaught" in message else None


def name_contents(value: str, files: Mapping[str, bytes]) -> str:
    """Return a URL or CSS value with a digest of the contents for each address."""
    if "url(" in value:
        return _URL.sub(lambda match: f"url({_digest(match[1], files)})", value)
    schemes = ("http:", "https:", "data:", "blob:", "file:")
    return _digest(value, files) if value.startswith(schemes) else value


def _digest(address: str, files: Mapping[str, bytes]) -> str:
    data = None
    if address.startswith(f"{ORIGIN}/"):
        data = files.get(address[len(ORIGIN) + 1 :].split("?")[0].split("#")[0])
        if data is None:
            return "missing"
    elif address.startswith("data:"):
        head, _, body = address.partition(",")
        with contextlib.suppress(binascii.Error):
            data = base64.b64decode(body) if head.endswith(";base64") else body.encode()
    return "foreign" if data is None else hashlib.sha256(data).hexdigest()[:16]


POOL = BrowserPool(Browser)  # the browsers of this process

"""The browser that renders one page at a time, and survives what pages do.

It has no network but its `PageServer`. Each page gets a new tab, empty storage, and limits. A page that hangs or grows
takes the browser with it: `alive` is false then, and the pool starts another.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selenium.common.exceptions import WebDriverException

from vlgym.chromium import DRIVER_ERRORS, BrowserPool, Chromium, Guard, Limits

from .server import ORIGIN, PageServer
from .steps import Interaction, Step
from .style_table import CSS_PROPERTIES
from .tables import Table, read_table

SETTLE_MS = 1000
"""How far the page's clock moves after loading and after every step, in milliseconds."""

MOST_ELEMENTS = 1500
"""Displayed elements that are read; more make the page fail."""

_SCRIPTS = Path(__file__).parent / "scripts"
_URL = re.compile(r"url\(\"([^\"]*)\"\)")
_SWITCHES = (
    "--disable-quic", "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows", "--block-new-web-contents", "--deny-permission-prompts",
    "--disable-notifications", "--disable-file-system", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--renderer-process-limit=4", "--js-flags=--max-old-space-size=256",
)  # fmt: skip


@dataclass(frozen=True)
class Render:
    """What came of a page.

    Attributes:
        tables: element table of the initial page and after each interaction; `None` where the interaction failed.
        pictures: screenshots of the same moments as PNG files; `None` where there is none.
        failure: `None`, or why the page could not be rendered (to the end): `timeout`, `memory`, `crash`,
            `left_page`, `too_many_elements`.
        problems: why interactions failed, by their number from 0: `not_found`, `hidden`, `covered`, or the failure.
        blocked: what the page tried and was refused: `network`, `local_file`, `dialog`, `popup`, `worker`,
            `download`; besides `script_error` and `timer_storm`.
        lost: whether the browser was lost, and the page need not be the cause: another browser may render it. A page
            that used more processor time or memory than it may has itself to blame.
    """

    tables: tuple[Table | None, ...]
    pictures: tuple[bytes | None, ...]
    failure: str | None = None
    problems: dict[int, str] = field(default_factory=dict)
    blocked: dict[str, int] = field(default_factory=dict)
    lost: bool = False

    @property
    def rendered(self) -> bool:
        """Whether the initial page could be read."""
        return self.tables[0] is not None


class PageFailure(Exception):
    """The page cannot be rendered any further; the argument is the failure's name."""


class StepFailure(Exception):
    """A step cannot be done; the argument says why."""


class Browser(Chromium):
    """A Chromium with a page server of its own.

    Args:
        limits: what one page, its interactions included, may use.

    Raises:
        MissingSystemPartError: Chromium or its driver is missing or does not start.
    """

    apt = f"{Chromium.apt} fonts-liberation"

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._secret = f"v{secrets.token_hex(8)}"
        self._page_script = (_SCRIPTS / "page.js").read_text("utf-8").replace("__NAME__", self._secret)
        self._harness = (_SCRIPTS / "harness.js").read_text("utf-8")
        console = {"goog:loggingPrefs": {"browser": "SEVERE"}}
        super().__init__("webui", proxy=0, switches=_SWITCHES, capabilities=console)
        self.server = PageServer(self.listeners[-1])
        self._home = self.driver.current_window_handle

    def close(self) -> None:
        """End the browser and its server."""
        super().close()
        if os.getpid() == self.owner and hasattr(self, "server"):
            self.server.close()

    def render(
        self,
        files: Mapping[str, bytes],
        interactions: Sequence[Interaction] = (),
        viewport: tuple[int, int] = (800, 600),
        *,
        annotated: bool = False,
        pictures: bool = True,
    ) -> Render:
        """Load a page, do the interactions, and read the element table (and take a picture) before and after each.

        Never raises for what the page does; a page that passes a limit ends the browser.

        Args:
            files: path -> contents; `index.html` is loaded.
            interactions: done in order, without reloading.
            viewport: width and height in pixels.
            annotated: whether annotations and digests of the outer HTML are read (targets only).
            pictures: whether screenshots are taken.
        """
        moments = 1 + len(interactions)
        tables: list[Table | None] = [None] * moments
        shots: list[bytes | None] = [None] * moments
        problems: dict[int, str] = {}
        blocked: dict[str, int] = {}
        failure = error_name = None
        self.server.show(files)
        stuck = False
        with Guard(self.process.pid, self.limits) as guard:
            try:
                try:
                    blocked = self._open(viewport)
                    tables[0], shots[0] = self._look(files, annotated, pictures)
                    for number, interaction in enumerate(interactions):
                        try:
                            for step in interaction.steps:
                                blocked = self._do(step)
                            tables[number + 1], shots[number + 1] = self._look(files, annotated, pictures)
                        except StepFailure as problem:
                            problems[number] = str(problem)
                except PageFailure as problem:
                    failure = str(problem)
                blocked["local_file"] = self._count_local_files()
                self._leave()
            except (*DRIVER_ERRORS, ValueError, KeyError) as error:
                error_name, stuck = _name_failure(error), True
        blamed = guard.reason is not None and not guard.by_clock
        lost = not blamed and (stuck or not self.intact)
        if guard.reason or stuck or lost:
            # What the page itself did is the cause, even if a limit was passed while its tab was being closed.
            failure = failure or guard.reason or error_name or "crash"
            self.kill()
        if failure:
            for number in range(len(interactions)):
                if tables[number + 1] is None:
                    problems.setdefault(number, failure)
        counted = {kind: count for kind, count in blocked.items() if count}
        return Render(tuple(tables), tuple(shots), failure, problems, counted, lost)

    # ---- private ---------------------------------------------------------------------------------------------------

    def _open(self, viewport: tuple[int, int]) -> dict[str, int]:
        self.driver.switch_to.new_window("tab")
        self.cdp("Storage.clearDataForOrigin", origin=ORIGIN, storageTypes="all")
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=viewport[0],
            height=viewport[1],
            deviceScaleFactor=1,
            mobile=False,
        )
        self.cdp("Page.addScriptToEvaluateOnNewDocument", source=self._page_script)
        self._world: int | None = None
        self.driver.get(f"{ORIGIN}/")
        return self._settle(SETTLE_MS)

    def _count_local_files(self) -> int:
        """Return how often the browser refused a local file, which it says nowhere but in its log."""
        entries = self.driver.execute("getLog", {"type": "browser"})["value"]
        return sum("Not allowed to load local resource" in entry.get("message", "") for entry in entries)

    def _leave(self) -> None:
        self.driver.close()
        self.driver.switch_to.window(self._home)

    def _do(self, step: Step) -> dict[str, int]:
        if step.kind == "wait":
            return self._settle(step.wait_ms)
        place = self._ask("locate", step.selector)
        if "problem" in place:
            raise StepFailure(f"{place['problem']}: {step.selector}")
        where = {"x": place["x"], "y": place["y"]}
        self.cdp("Input.dispatchMouseEvent", type="mouseMoved", **where)
        if step.kind in ("click", "type"):
            for kind in ("mousePressed", "mouseReleased"):
                self.cdp("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **where)
        if step.kind == "type":
            for character in step.text:
                self._press(character)
        return self._settle(SETTLE_MS)

    def _press(self, character: str) -> None:
        if character == "\n":
            key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        else:
            key = {"key": character, "text": character}
        self.cdp("Input.dispatchKeyEvent", type="keyDown", **key)
        self.cdp(
            "Input.dispatchKeyEvent", type="keyUp", **{name: value for name, value in key.items() if name != "text"}
        )

    def _settle(self, duration_ms: int) -> dict[str, int]:
        """Move the page's clock on and let everything come to rest; return what was refused so far."""
        answer = self._evaluate(f"typeof {self._secret} === 'function' ? {self._secret}({duration_ms}) : null", None)
        if answer is None:
            raise PageFailure("left_page")
        try:
            counts = {str(kind): int(count) for kind, count in json.loads(answer).items()}
        except (TypeError, ValueError, AttributeError, OverflowError):
            raise PageFailure("crash") from None  # the page has broken what its own scripts run on
        if counts.get("left_page"):
            raise PageFailure("left_page")
        return counts

    def _look(self, files: Mapping[str, bytes], annotated: bool, pictures: bool) -> tuple[Table, bytes | None]:
        seen = self._ask("read", list(CSS_PROPERTIES), MOST_ELEMENTS, annotated)
        if seen["where"] != ORIGIN:
            raise PageFailure("left_page")
        if seen["left_out"]:
            raise PageFailure("too_many_elements")
        for row in seen["rows"]:
            for name in ("src", "background-image"):
                row["styles"][name] = name_contents(row["styles"][name], files)
        shot = None
        if pictures:
            shot = base64.b64decode(self.cdp("Page.captureScreenshot", format="png", optimizeForSpeed=True)["data"])
        return read_table(seen["rows"]), shot

    def _ask(self, function: str, *arguments: Any) -> Any:
        """Call a function of `harness.js` in its own world, which is made again where the page has reloaded itself."""
        call = f"vlgymHarness.{function}({', '.join(json.dumps(argument) for argument in arguments)})"
        if self._world is not None:
            with contextlib.suppress(WebDriverException):
                return self._evaluate(call, self._world)
        frame = self.cdp("Page.getFrameTree")["frameTree"]["frame"]["id"]
        self._world = int(self.cdp("Page.createIsolatedWorld", frameId=frame, worldName="vlgym")["executionContextId"])
        return self._evaluate(f"{self._harness};{call}", self._world)

    def _evaluate(self, expression: str, world: int | None) -> Any:
        where = {} if world is None else {"contextId": world}
        answer = self.cdp("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, **where)
        if "exceptionDetails" in answer:
            details = json.dumps(answer["exceptionDetails"])
            if "SyntaxError" in details and "querySelector" in details:
                raise StepFailure("bad_selector")
            raise PageFailure("crash")
        return answer["result"].get("value")


def name_contents(value: str, files: Mapping[str, bytes]) -> str:
    """Return a URL, or a CSS value with `url("...")` in it, with each address replaced by a digest of what lies
    there.
    """
    if "url(" in value:
        return _URL.sub(lambda found: f"url({_digest(found[1], files)})", value)
    return _digest(value, files) if value.startswith(("http:", "https:", "data:", "blob:", "file:")) else value


def _digest(address: str, files: Mapping[str, bytes]) -> str:
    if address.startswith(f"{ORIGIN}/"):
        data = files.get(address[len(ORIGIN) + 1 :].split("?")[0].split("#")[0])
        return "missing" if data is None else hashlib.sha256(data).hexdigest()[:16]
    if address.startswith("data:"):
        head, _, body = address.partition(",")
        with contextlib.suppress(binascii.Error):
            return hashlib.sha256(base64.b64decode(body) if head.endswith(";base64") else body.encode()).hexdigest()[
                :16
            ]
    return "foreign"


def _name_failure(error: Exception) -> str:
    text = str(error).lower()
    return "timeout" if "timed out" in text or "timeout" in text else "crash"


POOL = BrowserPool(Browser)
"""The browsers of this process."""

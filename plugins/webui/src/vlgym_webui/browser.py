"""One headless Chromium, driven through Selenium, that renders one page at a time and survives what pages do.

It has no network but its `PageServer`, a profile of its own that is thrown away, and limits (`guard.py`). Each page
gets a new tab and empty storage. A page that hangs or grows takes the browser with it: `alive` is false then, and
the pool starts another.
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
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.remote_connection import ChromeRemoteConnection
from selenium.webdriver.common.proxy import Proxy, ProxyType
from selenium.webdriver.remote.client_config import ClientConfig
from selenium.webdriver.remote.webdriver import WebDriver

from vlgym.errors import MissingSystemPartError

from .driver import APT, start_driver
from .guard import Guard, Limits, kill_tree
from .server import ORIGIN, PageServer
from .steps import Interaction, Step
from .style_table import CSS_PROPERTIES
from .tables import Table, read_table

SETTLE_MS = 1000
"""How far the page's clock moves after loading and after every step, in milliseconds."""

SANDBOX_SWITCH = "VLGYM_WEBUI_SANDBOX"

_SCRIPTS = Path(__file__).parent / "scripts"
_PREFIX = "vlgym-webui-"
_URL = re.compile(r"url\(\"([^\"]*)\"\)")
_SWITCHES = (
    "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio", "--no-first-run",
    "--no-default-browser-check", "--lang=en-US", "--force-color-profile=srgb", "--font-render-hinting=none",
    "--force-device-scale-factor=1", "--disable-lcd-text", "--remote-debugging-pipe", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-domain-reliability", "--disable-sync",
    "--disable-client-side-phishing-detection", "--disable-breakpad", "--disable-quic", "--disable-default-apps",
    "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--block-new-web-contents", "--deny-permission-prompts", "--disable-notifications", "--disable-file-system",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--renderer-process-limit=4",
    "--js-flags=--max-old-space-size=256", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--proxy-bypass-list=<-loopback>",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,NetworkTimeServiceQuerying,"
    "InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,AutofillServerCommunication",
)  # fmt: skip
_DRIVER_ERRORS = (WebDriverException, urllib3.exceptions.HTTPError, OSError, ValueError, KeyError)


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
    """

    tables: tuple[Table | None, ...]
    pictures: tuple[bytes | None, ...]
    failure: str | None = None
    problems: dict[int, str] = field(default_factory=dict)
    blocked: dict[str, int] = field(default_factory=dict)

    @property
    def rendered(self) -> bool:
        """Whether the initial page could be read."""
        return self.tables[0] is not None


class PageFailure(Exception):
    """The page cannot be rendered any further; the argument is the failure's name."""


class StepFailure(Exception):
    """A step cannot be done; the argument says why."""


class Browser:
    """A Chromium and everything that belongs to it.

    Args:
        limits: what one page may use.

    Raises:
        MissingSystemPartError: Chromium or its driver is missing or does not start.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.owner = os.getpid()
        self._secret = f"v{secrets.token_hex(8)}"
        self._page_script = (_SCRIPTS / "page.js").read_text("utf-8").replace("__NAME__", self._secret)
        self._harness = (_SCRIPTS / "harness.js").read_text("utf-8")
        _sweep_profiles()
        self._profile = tempfile.mkdtemp(prefix=f"{_PREFIX}{self.owner}-")
        self.server = PageServer()
        try:
            self._process, address = start_driver(self._profile)
        except MissingSystemPartError:
            self.server.close()
            shutil.rmtree(self._profile, ignore_errors=True)
            raise
        self._driver = self._start_session(address)
        self._home = self._driver.current_window_handle

    @property
    def alive(self) -> bool:
        """Whether the browser can render another page."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the browser and remove its profile; a forked process leaves its parent's browser alone."""
        if os.getpid() != self.owner:
            return
        kill_tree(self._process.pid)
        self._process.wait()
        self.server.close()
        shutil.rmtree(self._profile, ignore_errors=True)

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
        with Guard(self._process.pid, self.limits) as guard:
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
            except _DRIVER_ERRORS as error:
                error_name, stuck = _name_failure(error), True
        if guard.reason or stuck:
            # What the page itself did is the cause, even if a limit was passed while its tab was being closed.
            failure = failure or guard.reason or error_name
            kill_tree(self._process.pid)
            self._process.wait()
        if failure:
            for number in range(len(interactions)):
                if tables[number + 1] is None:
                    problems.setdefault(number, failure)
        counted = {kind: count for kind, count in blocked.items() if count}
        return Render(tuple(tables), tuple(shots), failure, problems, counted)

    # ---- private ---------------------------------------------------------------------------------------------------

    def _open(self, viewport: tuple[int, int]) -> dict[str, int]:
        self._driver.switch_to.new_window("tab")
        self._cdp("Storage.clearDataForOrigin", origin=ORIGIN, storageTypes="all")
        self._cdp(
            "Emulation.setDeviceMetricsOverride",
            width=viewport[0],
            height=viewport[1],
            deviceScaleFactor=1,
            mobile=False,
        )
        self._cdp("Page.addScriptToEvaluateOnNewDocument", source=self._page_script)
        self._world: int | None = None
        self._driver.get(f"{ORIGIN}/")
        return self._settle(SETTLE_MS)

    def _count_local_files(self) -> int:
        """Return how often the browser refused a local file, which it says nowhere but in its log."""
        entries = self._driver.execute("getLog", {"type": "browser"})["value"]
        return sum("Not allowed to load local resource" in entry.get("message", "") for entry in entries)

    def _leave(self) -> None:
        self._driver.close()
        self._driver.switch_to.window(self._home)

    def _do(self, step: Step) -> dict[str, int]:
        if step.kind == "wait":
            return self._settle(step.wait_ms)
        place = self._ask("locate", step.selector)
        if "problem" in place:
            raise StepFailure(f"{place['problem']}: {step.selector}")
        where = {"x": place["x"], "y": place["y"]}
        self._cdp("Input.dispatchMouseEvent", type="mouseMoved", **where)
        if step.kind in ("click", "type"):
            for kind in ("mousePressed", "mouseReleased"):
                self._cdp("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **where)
        if step.kind == "type":
            for character in step.text:
                self._press(character)
        return self._settle(SETTLE_MS)

    def _press(self, character: str) -> None:
        if character == "\n":
            key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        else:
            key = {"key": character, "text": character}
        self._cdp("Input.dispatchKeyEvent", type="keyDown", **key)
        self._cdp(
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
        seen = self._ask("read", list(CSS_PROPERTIES), self.limits.elements, annotated)
        if seen["where"] != ORIGIN:
            raise PageFailure("left_page")
        if seen["left_out"]:
            raise PageFailure("too_many_elements")
        for row in seen["rows"]:
            for name in ("src", "background-image"):
                row["styles"][name] = name_contents(row["styles"][name], files)
        shot = None
        if pictures:
            shot = base64.b64decode(self._cdp("Page.captureScreenshot", format="png", optimizeForSpeed=True)["data"])
        return read_table(seen["rows"]), shot

    def _ask(self, function: str, *arguments: Any) -> Any:
        """Call a function of `harness.js` in its own world, which is made again where the page has reloaded itself."""
        call = f"vlgymHarness.{function}({', '.join(json.dumps(argument) for argument in arguments)})"
        if self._world is not None:
            with contextlib.suppress(WebDriverException):
                return self._evaluate(call, self._world)
        frame = self._cdp("Page.getFrameTree")["frameTree"]["frame"]["id"]
        self._world = int(self._cdp("Page.createIsolatedWorld", frameId=frame, worldName="vlgym")["executionContextId"])
        return self._evaluate(f"{self._harness};{call}", self._world)

    def _evaluate(self, expression: str, world: int | None) -> Any:
        where = {} if world is None else {"contextId": world}
        answer = self._cdp("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, **where)
        if "exceptionDetails" in answer:
            details = json.dumps(answer["exceptionDetails"])
            if "SyntaxError" in details and "querySelector" in details:
                raise StepFailure("bad_selector")
            raise PageFailure("crash")
        return answer["result"].get("value")

    def _cdp(self, command: str, **arguments: Any) -> dict[str, Any]:
        return self._driver.execute("executeCdpCommand", {"cmd": command, "params": arguments})["value"]

    def _start_session(self, address: str) -> WebDriver:
        options = Options()
        options.set_capability("goog:loggingPrefs", {"browser": "SEVERE"})
        binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if binary:
            options.binary_location = binary
        for switch in (
            *_SWITCHES,
            f"--proxy-server=http://127.0.0.1:{self.server.port}",
            f"--user-data-dir={self._profile}/data",
        ):
            options.add_argument(switch)
        # Chromium's own sandbox does not run as root, and is switched off by hand in containers without user
        # namespaces.
        if os.geteuid() == 0 or os.environ.get(SANDBOX_SWITCH) == "off":
            options.add_argument("--no-sandbox")
        config = ClientConfig(address, timeout=120, proxy=Proxy({"proxyType": ProxyType.DIRECT}))
        try:
            return WebDriver(command_executor=ChromeRemoteConnection(address, client_config=config), options=options)
        except (WebDriverException, urllib3.exceptions.HTTPError) as error:
            message = str(error).strip().splitlines()
            self.close()
            raise MissingSystemPartError(
                f"Chromium does not start: {message[0] if message else error}. Install it with: {APT}. In a "
                f"container without user "
                f"namespaces also set {SANDBOX_SWITCH}=off (the container is the sandbox then)."
            ) from None


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


def _sweep_profiles() -> None:
    """Remove the profiles of processes that were killed before they could."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = folder.name[len(_PREFIX) :].split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)

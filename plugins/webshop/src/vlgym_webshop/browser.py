"""The browser: one headless Chromium, driven through Selenium, that photographs pages for any number of environments.

It holds no state of an episode: every photograph begins with a complete address. So one tab serves all environments,
and a browser that crashed or hangs is killed, started again and asked again, without any episode noticing.

It sees nothing but the shop: the profile is a temporary folder, every request that is not for the shop's server goes to
a proxy that does not exist, and no host name resolves.
"""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import urllib3
from PIL import Image as PILImage
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service

from vlgym.errors import MissingSystemPartError
from vlgym.types import Image

from .errors import BrowserError

PAGE_SECONDS = 30.0
"""Longest time that a page may take to load or to be photographed."""

ATTEMPTS = 3
"""Browsers tried for one page before it is given up."""

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
APT_LINE = "apt-get install -y chromium chromium-driver fonts-dejavu-core"
_REMEMBERED = 24
_DEAD_PROXY = "127.0.0.1:9"
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",  # no debugging port; and Chromium ends when its driver does
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-breakpad",
    "--disable-features=BackForwardCache,PaintHolding,SpareRendererForSitePerProcess,Translate,OptimizationHints,MediaRouter,"
    "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,HttpsFirstModeIncognito,HttpsFirstModeV2",
    "--kiosk",  # no tabs and tool bars to draw: a tenth of the work of a page
    "--in-process-gpu",
    "--incognito",  # no history, no cookies
    "--no-first-run",
    "--no-default-browser-check",
    "--mute-audio",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--disable-lcd-text",
    "--lang=en-US",
    f"--proxy-server={_DEAD_PROXY}",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

_FETCH = """fetch(%(url)s, {signal: AbortSignal.timeout(%(limit)d)}).then(answer => {
    if (!answer.ok) throw new Error("status " + answer.status);
    return answer.text();
}).then(text => {
    document.open(); document.write(text); document.close();
    history.replaceState(null, "", %(url)s);
})"""


class Browser:
    """Photographs pages. Safe for threads; not to be carried over a fork.

    Args:
        page_seconds: time limit for each page.
        site: the only place that it can reach, `127.0.0.1:port`; without a port all of this machine's own servers.

    Attributes:
        restarts: how often a crashed or hanging browser was replaced.
        photographs: pages that were really loaded (the rest were remembered).

    Raises:
        MissingSystemPartError: Chromium or its driver is not installed.
    """

    def __init__(self, page_seconds: float = PAGE_SECONDS, site: str = "127.0.0.1") -> None:
        self._page_seconds = page_seconds
        # `<-loopback>` takes away Chromium's own rule that this machine is never asked through a proxy.
        self._bypass = f"--proxy-bypass-list=<-loopback>;{site}"
        self._programs = find_programs()
        self._lock = RLock()
        self._driver: webdriver.Chrome | None = None
        self._profile: Path | None = None
        self._viewport: tuple[int, int] | None = None
        self._site = ""
        self._remembered: OrderedDict[tuple[str, tuple[int, int], bool], Image] = OrderedDict()
        self.restarts = 0
        self.photographs = 0

    def photograph(self, url: str, viewport: tuple[int, int], full_page: bool = False) -> Image:
        """Load a page and return its picture.

        Args:
            url: complete address; a page is a function of it, so the last 24 pictures are remembered.
            viewport: height and width of the window in pixels.
            full_page: the whole page instead of the window's part of it.

        Returns:
            `[H, W, 3] uint8`, read-only and shared; `H` is the page's height with `full_page`, else the viewport's.

        Raises:
            BrowserError: three browsers in a row failed on the page.
        """
        key = (url, viewport, full_page)
        with self._lock:
            if key in self._remembered:
                self._remembered.move_to_end(key)
                return self._remembered[key]
            picture = self._try(url, viewport, full_page)
            self._remembered[key] = picture
            if len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)
            return picture

    def driver(self) -> webdriver.Chrome:
        """Return the running Selenium driver, starting the browser where none runs."""
        with self._lock:
            return self._driver or self._start()

    def processes(self) -> list[int]:
        """Return the process ids of the driver and of everything it started; empty where no browser runs."""
        with self._lock:
            process = getattr(getattr(self._driver, "service", None), "process", None)
            return [] if process is None else [process.pid, *_descendants(process.pid)]

    def close(self) -> None:
        """End the browser and remove its profile."""
        with self._lock:
            self._stop()
            self._remembered.clear()

    # ---- private ---------------------------------------------------------------------------------------------------

    def _try(self, url: str, viewport: tuple[int, int], full_page: bool) -> Image:
        reason: Exception | None = None
        for _ in range(ATTEMPTS):
            try:
                return self._photograph(url, viewport, full_page)
            except (WebDriverException, urllib3.exceptions.HTTPError, OSError, KeyError, ValueError) as error:
                reason = error
                self.restarts += 1
                self._stop()
        raise BrowserError(
            f"Chromium failed {ATTEMPTS} times on {url}; last: {type(reason).__name__}: {str(reason).strip()[:300]}"
        ) from reason

    def _photograph(self, url: str, viewport: tuple[int, int], full_page: bool) -> Image:
        driver = self.driver()
        if viewport != self._viewport:
            metrics = {"width": viewport[1], "height": viewport[0], "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            self._viewport = viewport
        self._load(driver, url)
        request: dict[str, Any] = {"format": "png", "optimizeForSpeed": True, "captureBeyondViewport": full_page}
        if full_page:
            size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
            height = max(int(size["height"]), viewport[0])
            request["clip"] = {"x": 0, "y": 0, "width": viewport[1], "height": height, "scale": 1}
        data = base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", request)["data"])
        with PILImage.open(io.BytesIO(data)) as shot:
            picture = np.asarray(shot.convert("RGB")).copy()
        if picture.shape[1] != viewport[1] or (not full_page and picture.shape[0] != viewport[0]):
            raise ValueError(
                f"the picture is {picture.shape[1]} x {picture.shape[0]}, not {viewport[1]} x {viewport[0]}"
            )
        picture.setflags(write=False)
        self.photographs += 1
        return picture

    def _load(self, driver: webdriver.Chrome, url: str) -> None:
        """Show a page: the first one of a browser by navigating to it, a later one by fetching it into the open
        document.

        Both load it from the server; the second takes half the processor time (no new document, history entry or
        frame), and gives the same picture, which a test compares.
        """
        site = url.split("/", 3)[2]
        if self._site != site:
            driver.get(url)
            self._site = site
            return
        limit = int(self._page_seconds * 1000)
        expression = _FETCH % {"url": json.dumps(url), "limit": limit}
        answer = driver.execute_cdp_cmd("Runtime.evaluate", {"expression": expression, "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise ValueError(f"the page did not load: {answer['result'].get('description', '')[:200]}")

    def _start(self) -> webdriver.Chrome:
        chromium, chromedriver = self._programs
        self._profile = Path(tempfile.mkdtemp(prefix="vlgym-webshop-"))
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (*_FLAGS, self._bypass, f"--user-data-dir={self._profile}"):
            options.add_argument(flag)
        with warnings.catch_warnings():  # Chrome takes no ClientConfig yet, which is to replace this
            warnings.simplefilter("ignore", DeprecationWarning)
            options.ignore_local_proxy_environment_variables()  # the driver is on this machine
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            options.add_argument(
                "--no-sandbox"
            )  # Chromium refuses to run its sandbox as root; it shows our own pages only
        service = _Service(chromedriver, log_output=subprocess.DEVNULL, env=_clean_environment(self._profile))
        try:
            driver = webdriver.Chrome(options=options, service=service)
        except Exception:
            with suppress(Exception):
                service.stop()
            shutil.rmtree(self._profile, ignore_errors=True)
            raise
        self._driver, self._viewport, self._site = driver, None, ""
        driver.command_executor.client_config.timeout = self._page_seconds + 5.0  # type: ignore[union-attr]
        driver.set_page_load_timeout(self._page_seconds)
        return driver

    def _stop(self) -> None:
        """Kill the driver and all that it started; a hanging browser would not listen to anything gentler."""
        driver, self._driver = self._driver, None
        if driver is not None:
            process = driver.service.process
            victims = [process.pid, *_descendants(process.pid)] if process is not None else []
            for victim in victims:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(victim, signal.SIGKILL)
            if process is not None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=5)
            driver.service.process = None  # type: ignore[assignment]
        if self._profile is not None:
            shutil.rmtree(self._profile, ignore_errors=True)
            self._profile = None


class _Service(Service):
    """The driver's process, killed by the kernel when this process dies (where util-linux has `setpriv`)."""

    def __init__(self, chromedriver: str, **kwargs: Any) -> None:
        self._chromedriver = chromedriver
        self._setpriv = shutil.which("setpriv")
        super().__init__(self._setpriv or chromedriver, **kwargs)

    def command_line_args(self) -> list[str]:
        own = super().command_line_args()
        return ["--pdeathsig", "KILL", self._chromedriver, *own] if self._setpriv else own


def find_programs() -> tuple[str, str]:
    """Return the paths of Chromium and its driver: `$VLGYM_CHROMIUM` and `$VLGYM_CHROMEDRIVER` where set, else from
    the search path.

    Raises:
        MissingSystemPartError: one is missing.
    """
    found = []
    for variable, names in (("VLGYM_CHROMIUM", CHROMIUM_NAMES), ("VLGYM_CHROMEDRIVER", ("chromedriver",))):
        wanted = [os.environ[variable]] if os.environ.get(variable) else list(names)
        path = next((path for name in wanted if (path := shutil.which(name))), None)
        if path is None:
            raise MissingSystemPartError(
                f"WebShop needs Chromium and its driver, but found none of {', '.join(wanted)}. "
                f"Install them with `{APT_LINE}`, "
                f"or set {variable} to the program's path."
            )
        found.append(path)
    return found[0], found[1]


def _clean_environment(profile: Path) -> dict[str, str]:
    """Return the browser's environment variables: no proxies, and the profile as its home for all that it writes."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {
        **kept,
        "HOME": str(profile),
        "XDG_CONFIG_HOME": str(profile),
        "XDG_CACHE_HOME": str(profile),
        "TMPDIR": str(profile),
    }


def _descendants(pid: int) -> list[int]:
    """Return the ids of all processes below `pid`, from /proc; empty where there is none."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(folder.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found

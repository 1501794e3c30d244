"""The browser: photographs pages for any number of environments with one Chromium.

It holds no state of an episode: every photograph begins with a complete address. So one tab serves all
environments, and a browser that crashed or hangs is replaced and asked again, without any episode
noticing. It sees nothing but the shop.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING

from vlgym.browser.chromium import ATTEMPTS, BrowserError, BrowserPool, Chromium
from vlgym.env.rendering import decode_png
from vlgym.types import Image

if TYPE_CHECKING:
    from .site.server import ShopServer

VIEWPORT = (672, 896)  # height and width of the window: multiples of 28 and 32, as models' patches

_SWITCHES = (
    "--kiosk",  # no tabs and tool bars to draw: a tenth of the work of a page
    "--in-process-gpu",
    "--incognito",  # no history, no cookies
)
_FETCH = """fetch(%(url)s, {signal: AbortSignal.timeout(%(limit)d)}).then(answer => {
    if (!answer.ok) throw new Error("status " + answer.status);
    return answer.text();
}).then(text => {
    document.open(); document.write(text); document.close();
    history.replaceState(null, "", %(url)s);
})"""


class WindowPool(BrowserPool["Window"]):
    """Photographs pages with one Chromium at a time. Safe for threads; not for use after a fork.

    `host` returns the only server that it can reach. A page may take `page_seconds` to load.
    """

    def __init__(self, host: Callable[[], ShopServer], page_seconds: float = 30.0) -> None:
        super().__init__(lambda: Window(host(), page_seconds))
        self._turn = RLock()
        self._remembered = lru_cache(24)(self._photograph)  # a page is a function of its address

    def photograph(self, url: str) -> Image:
        """Return the picture of a page, `VIEWPORT` large: `[H, W, 3] uint8`, read-only and shared.

        A `BrowserError` says that three browsers in a row failed on the page.
        """
        with self._turn:
            return self._remembered(url)

    def close(self) -> None:
        """End Chromium; the next photograph starts it again."""
        with self._turn:
            super().close()
            self._remembered.cache_clear()

    def _photograph(self, url: str) -> Image:
        reason: BrowserError | None = None
        for _ in range(ATTEMPTS):
            try:
                with self.borrow() as window:
                    picture = window.photograph(url)
                    if not window.intact:
                        raise BrowserError("a process of Chromium ended while the page was shown")
                return picture
            except BrowserError as error:
                reason = error
        raise BrowserError(f"Chromium failed {ATTEMPTS} times on {url}; last: {reason}") from reason


class Window(Chromium):
    """One running Chromium, with one tab."""

    def __init__(self, host: ShopServer, page_seconds: float) -> None:
        super().__init__("webshop", site=host.port, switches=_SWITCHES, answer_s=int(page_seconds + 5))
        # In a network that is not its own, the server is there already.
        self._stops = [host.serve_on(listener) for listener in self.listeners]
        self.driver.set_page_load_timeout(page_seconds)
        self._page_ms = int(page_seconds * 1000)
        self._site = ""

    def close(self) -> None:
        """End it, and what serves it."""
        super().close()
        if os.getpid() == self.owner:
            for stop in self._stops:
                stop()
            self._stops = []

    def photograph(self, url: str) -> Image:
        """Load a page and return its picture; a `BrowserError` if it does not load or looks wrong."""
        self._load(url)
        shot = self.cdp("Page.captureScreenshot", format="png", optimizeForSpeed=True)
        picture = decode_png(base64.b64decode(shot["data"]))
        if picture.shape[:2] != VIEWPORT:
            raise BrowserError(f"the picture is {picture.shape[:2]}, not {VIEWPORT}")
        picture.setflags(write=False)
        return picture

    def _load(self, url: str) -> None:
        """Show a page: by navigating to the first one, by fetching later ones, in half the processor time."""
        site = url.split("/", 3)[2]

        # The first page of a site needs a navigation, at the size that the pictures shall have.
        if self._site != site:
            height, width = VIEWPORT
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            self.cdp("Emulation.setDeviceMetricsOverride", **metrics)
            self.driver.get(url)
            self._site = site
            return
        expression = _FETCH % {"url": json.dumps(url), "limit": self._page_ms}
        answer = self.cdp("Runtime.evaluate", expression=expression, awaitPromise=True)
        if "exceptionDetails" in answer:
            reason = answer["result"].get("description", "")[:200]
            raise BrowserError(f"the page did not load: {reason}")

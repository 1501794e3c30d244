"""The browsers of this process: started when first needed, kept warm, replaced when a page has ended one, gone with
the process.

A forked child starts its own (it inherits none), so asynchronous vectorisation works; constructing an environment
starts nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.util import Finalize

from .browser import Browser
from .guard import Limits


class BrowserPool:
    """Lends browsers, one to each caller at a time.

    Attributes:
        started: browsers started so far.
        lost: browsers ended by a page (or otherwise found dead) so far.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._lock = threading.Lock()
        self._idle: list[Browser] = []
        self._inherited: list[Browser] = []
        self._finalizer: Finalize | None = None
        self.started = self.lost = 0
        os.register_at_fork(after_in_child=self._begin_in_child)

    @contextmanager
    def borrow(self) -> Iterator[Browser]:
        """Lend a living browser for a `with` block.

        Raises:
            MissingSystemPartError: Chromium is not installed or does not start.
        """
        browser = self._take()
        try:
            yield browser
        finally:
            self._give(browser)

    def close(self) -> None:
        """End all idle browsers; the next caller starts a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for browser in idle:
            browser.close()

    def _take(self) -> Browser:
        while True:
            with self._lock:
                browser = self._idle.pop() if self._idle else None
            if browser is None:
                break
            if browser.alive:
                return browser
            self._discard(browser)
        browser = Browser(self.limits)
        with self._lock:
            self.started += 1
            if self._finalizer is None:
                # Runs at the end of the main process and of multiprocessing's children, which run no atexit functions.
                self._finalizer = Finalize(None, self.close, exitpriority=10)
        return browser

    def _give(self, browser: Browser) -> None:
        if browser.alive:
            with self._lock:
                self._idle.append(browser)
        else:
            self._discard(browser)

    def _discard(self, browser: Browser) -> None:
        browser.close()
        with self._lock:
            self.lost += 1

    def _begin_in_child(self) -> None:
        self._inherited = self._idle  # kept, so that nothing of the parent's is finalised here
        self._lock = threading.Lock()
        self._idle = []
        self._finalizer = None
        self.started = self.lost = 0


POOL = BrowserPool()
"""The pool of this process."""

"""The processes of a browser, found by their command lines."""

from __future__ import annotations

from contextlib import suppress

import psutil
from vlgym_webui.browser import Browser


def find(browser: Browser, words: str) -> psutil.Process:
    """Return the process of a browser whose command line holds some words.

    Raises:
        LookupError: it has none.
    """
    for process in map(psutil.Process, browser.processes()):
        with suppress(psutil.Error):
            if words in " ".join(process.cmdline()):
                return process
    raise LookupError(words)

"""The packages that reports need beside the core's, and what to say where one is missing."""

from __future__ import annotations

from typing import Any

from ..installing import import_extra


def need(module: str) -> Any:
    """Import a module of the extra `eval`.

    Raises:
        NotInstalledError: it is not installed; the message says how to install it.
    """
    return import_extra(module, "eval", "A report")

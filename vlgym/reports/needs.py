"""The packages that reports need beside the core's, and what to say where one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import NotInstalledError
from ..installing import how_to_install


def need(module: str) -> Any:
    """Import a module of the extra `eval`.

    Raises:
        NotInstalledError: it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        name = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != name:
            raise
        raise NotInstalledError(
            f"Reports need {name}, which is not installed: {how_to_install('vlgym[eval]')}"
        ) from None

"""Packages that only some options need."""

from __future__ import annotations

import importlib.util

from vlgym.errors import UserError
from vlgym.installing import how_to_install


def need_bitsandbytes(option: str, instead: str) -> None:
    """Check that bitsandbytes is there, without importing it.

    Args:
        option: what asks for it, as the user wrote it.
        instead: what works without it.

    Raises:
        UserError: it is not installed.
    """
    if importlib.util.find_spec("bitsandbytes") is None:
        raise UserError(
            f"{option} needs bitsandbytes, which is not installed: {how_to_install('vlgym[quant]')}. "
            f"Without it: {instead}"
        )

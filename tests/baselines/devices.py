"""Where tests marked `on_device` put their tensors: VLGYM_TEST_DEVICE is cpu (the default), cuda, or pretend.

pretend is the pretend accelerator of `pretend.py`: it shows without a GPU that these tests keep to one device.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext

from pretend import accelerator

CHOSEN = os.environ.get("VLGYM_TEST_DEVICE", "cpu")
DEVICE = "cpu" if CHOSEN == "cpu" else "cuda"


def away_from_the_host() -> AbstractContextManager[None]:
    """A device "cuda" for tests that need one whatever was chosen: the real one, or a pretended one."""
    return accelerator() if CHOSEN == "cpu" else nullcontext()

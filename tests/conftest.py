"""Makes `toys` importable in the tests, which run in importlib mode, and in their processes."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

examples = int(os.environ.get("VLGYM_EXAMPLES", "20"))
settings.register_profile("vlgym", deadline=None, derandomize=True, max_examples=examples)
settings.load_profile("vlgym")

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it

os.environ.pop("COLUMNS", None)  # pytest-xdist sets it; outputs are as wide as in a pipe

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))


@pytest.fixture
def toys_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let child processes import `toys` and `broken_toys`."""
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)


@pytest.fixture
def toys_installed(request: pytest.FixtureRequest) -> Iterator[None]:
    """The specs that a module names in `INSTALLED`."""
    from toys import installed

    with installed(*request.module.INSTALLED):
        yield

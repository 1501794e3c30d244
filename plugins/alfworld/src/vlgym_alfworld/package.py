"""Files of the installed `alfworld` package, and an import of it that leaves the process as it was.

`import alfworld` makes a folder under the home directory and sets the environment variable
`ALFWORLD_DATA`; `import textworld` draws from NumPy's global generator. This import does neither:
the variable points at the package meanwhile; variable and generators are put back.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import random
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from vlgym.errors import MissingSystemPartError
from vlgym.registry.installing import how_to_install

VARIABLE = "ALFWORLD_DATA"
DEFAULT_DATA = "~/.cache/alfworld"  # where `alfworld-download` puts the benchmark by default
DOWNLOAD_AGAIN = "Download it again: alfworld-download --force."
_FIX = (
    "ALFWorld needs the packages alfworld and textworld, partly built from source: run 'apt-get "
    f"install gcc g++ make cmake', then '{how_to_install('vlgym-alfworld')}'."
)
_LOCK = threading.RLock()


def data_folder() -> Path:
    """Return the folder of the benchmark's data, `ALFWORLD_DATA` or the default; it need not exist."""
    return Path(os.environ.get(VARIABLE, "").strip() or DEFAULT_DATA).expanduser()


def import_quietly(name: str) -> ModuleType:
    """Import a module of `alfworld` or `textworld` or raise `MissingSystemPartError`."""
    with _LOCK, _process_set_aside():
        try:
            return importlib.import_module(name)
        except ImportError as error:
            raise MissingSystemPartError(f"{name} cannot be imported ({error}). {_FIX}") from error


@cache
def package_folder() -> Path:
    """Return the folder of the package, without importing it; `MissingSystemPartError` without one."""
    spec = importlib.util.find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise MissingSystemPartError(f"The package alfworld is not installed. {_FIX}")
    return Path(spec.submodule_search_locations[0])


@cache
def read_data(name: str) -> str:
    """Return a text that the package ships: PDDL domain or text grammar."""
    return (package_folder() / "data" / name).read_text(encoding="utf-8")


@cache
def constants() -> ModuleType:
    """Return the package's tables: containment, action objects, scene numbers, room kinds."""
    return import_quietly("alfworld.gen.constants")


@cache
def goal_library() -> dict[str, dict[str, Any]]:
    """Return, by ALFRED task type, the PDDL goal and the sentences of the task."""
    library: dict[str, dict[str, Any]] = import_quietly("alfworld.gen.goal_library").gdict
    return library


@contextlib.contextmanager
def _process_set_aside() -> Iterator[None]:
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    before, wanted = os.environ.get(VARIABLE), data_folder()
    try:
        os.environ[VARIABLE] = str(package_folder())
        yield
        _correct_data_folder(wanted)
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


def _correct_data_folder(folder: Path) -> None:
    """Give the imported package the value that it would have read, for other code of this process."""
    for name in ("alfworld", "alfworld.info"):
        module = importlib.import_module(name)
        if getattr(module, VARIABLE, None) == str(package_folder()):
            setattr(module, VARIABLE, str(folder))

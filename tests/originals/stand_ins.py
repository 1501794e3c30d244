"""Load a file of an original without what it imports beyond its rules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

State = tuple[str, Any, Any]
"""What was compared, ours and theirs."""


def load(path: Path, package: str = "", **stand_ins: Any) -> ModuleType:
    """Import a file of an original, with stand-ins for modules by their dotted names (`__` stands
    for a dot)."""
    name = f"{package}.{path.stem}" if package else f"original_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    lent = {key.replace("__", "."): value for key, value in stand_ins.items()}
    before = {key: sys.modules.get(key) for key in lent}
    for key, module_lent in lent.items():
        parent, _, child = key.rpartition(".")
        if parent in lent:
            vars(lent[parent]).setdefault(child, module_lent)
    sys.modules.update(lent)
    spec.loader.exec_module(module)
    for key in lent:  # other imports stay: a second copy of a library has other classes
        del sys.modules[key]
        sys.modules.update({key: before[key]} if before[key] else {})
    return module


def folder_package(name: str, path: Path) -> ModuleType:
    """Return an empty package over a folder, whose own `__init__` imports too much."""
    package = ModuleType(name)
    package.__path__ = [str(path)]
    return package


def stand_in(**attributes: Any) -> ModuleType:
    """Return a module with these attributes alone."""
    module = ModuleType("stand_in")
    vars(module).update(attributes)
    return module

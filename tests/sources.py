"""The repository's Python files and what they import, for the tests that enforce the house rules.

Reads files; imports nothing.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def list_files(*folders: str) -> list[Path]:
    """Return the non-test Python files under folders of the repository."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    left_out = {"tests", "build", ".venv", "__pycache__"}
    return [path for path in paths if not left_out & set(path.relative_to(ROOT).parts[:-1])]


@cache
def read_tree(path: Path) -> ast.Module:
    """Return the parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def show(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module_name(path: Path) -> str:
    """Return the dotted name of a file of vlgym or baselines, or of a plugin's `src`."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if "src" in parts:
        parts = parts[parts.index("src") + 1 :]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the dotted names that a file imports; `from a import b` yields `a` and `a.b`."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(read_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)

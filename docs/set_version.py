"""Give the core and every plugin a version: `python docs/set_version.py 0.2.0`.

The version stands in `vlgym/__init__.py`. What must repeat it (distributions and their bounds, the citation, the files
that show a plugin) is written by this command, all of it or nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = "vlgym/__init__.py"
SHAPE = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(?:a|b|rc)\d+)?")
REPEATED = (
    "pyproject.toml", "plugins/*/pyproject.toml", "tests/fixtures/*/pyproject.toml", "docs/write-a-plugin.md",
    "CITATION.cff",
)  # fmt: skip


def read_version(root: Path) -> str:
    """Return the present version."""
    return re.findall(r'^__version__ = "(.+)"$', (root / HOME).read_text(encoding="utf-8"), re.MULTILINE)[0]


def name_bounds(version: str) -> str:
    """Return which versions of the core a plugin of a version takes: `>=0.1,<0.2`."""
    major, minor = (int(part) for part in SHAPE.fullmatch(version).groups()[:2])  # type: ignore[union-attr]
    return f">={major}.{minor},<{major}.{minor + 1}" if major == 0 else f">={major}.{minor},<{major + 1}"


def set_version(root: Path, new: str) -> list[Path]:
    """Write a version wherever it stands; return the files.

    Raises:
        ValueError: it is no version, or a file does not hold the present one.
    """
    if not SHAPE.fullmatch(new):
        raise ValueError(f"{new!r} is no version; write three numbers, such as 0.2.0, or 0.2.0rc1.")
    old = read_version(root)
    lines = {f'version = "{old}"': f'version = "{new}"', f"version: {old}": f"version: {new}"}
    lines |= {f'__version__ = "{old}"': f'__version__ = "{new}"'}
    written = {}
    for path in [root / HOME, *sorted(each for pattern in REPEATED for each in root.glob(pattern))]:
        text = path.read_text(encoding="utf-8")
        changed = "\n".join(lines.get(line, line) for line in text.split("\n"))
        changed = re.sub(rf"(vlgym(?:-\w+)?){re.escape(name_bounds(old))}", rf"\g<1>{name_bounds(new)}", changed)
        if new != old and changed == text:
            raise ValueError(f"{path} does not hold version {old}; nothing was written.")
        written[path] = changed
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    return list(written)


def main() -> None:
    """Set the version that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="three numbers, such as 0.2.0")
    try:
        files = set_version(ROOT, parser.parse_args().version)
    except ValueError as error:
        sys.exit(f"set_version: {error}")
    print(f"{len(files)} files written; name the version in CHANGELOG.md, too")


if __name__ == "__main__":
    main()

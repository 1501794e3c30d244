"""Versions of what is installed, and digests of its code, for the records."""

import functools
import hashlib
import platform
import re
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

CORE_PACKAGES = ("vlgym", "gymnasium", "numpy", "pillow")
_PACKAGE_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_EXTRA = re.compile(r";.*\bextra\b")


def list_versions(distributions: Iterable[str] = ()) -> dict[str, str]:
    """Return name -> version of Python, the core, distributions and their requirements."""
    versions = {"python": platform.python_version()}
    for name in (*CORE_PACKAGES, *sorted(set(distributions))):
        lines = [] if name in CORE_PACKAGES else read_requirements(name)
        required = [_PACKAGE_NAME.match(line) for line in lines if not _EXTRA.search(line)]
        for each in (name, *(match[0] for match in required if match)):
            if (version := find_version(each)) is not None:
                versions.setdefault(each, version)
    return versions


@functools.cache
def find_distribution(module: str) -> str | None:
    """Return the distribution of a module's top package, if it was installed."""
    owners = metadata.packages_distributions().get(module.partition(".")[0], [])
    return owners[0] if owners else None


@functools.cache
def hash_code(place: str) -> str | None:
    """Return a digest of the Python files of a module's top package; `None` without any."""
    try:
        package = find_spec(re.split("[.:]", place)[0])
    except ValueError:  # __main__ has no place
        package = None
    tops = map(Path, (package.submodule_search_locations or [package.origin or ""]) if package else ())
    words = []
    for top in tops:
        for path in [top] if top.is_file() else sorted(top.rglob("*.py")):
            words.append(f"{path.relative_to(top.parent).as_posix()} {path.read_text('utf-8')}")
    return hashlib.sha256(repr(words).encode()).hexdigest()[:16] if words else None


def read_requirements(distribution: str) -> list[str]:
    """Return the requirements of a distribution, extras included; none if it is missing."""
    try:
        return metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return []


def find_version(distribution: str) -> str | None:
    """Return the version of a distribution; `None` where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None

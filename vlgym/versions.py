"""Versions of the installed distributions that a run's numbers depend on."""

from __future__ import annotations

import functools
import platform
import re
from collections.abc import Iterable
from importlib import metadata

CORE = ("vlgym", "gymnasium", "numpy", "pillow")

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_EXTRA = re.compile(r";.*\bextra\b")


def list_versions(distributions: Iterable[str] = ()) -> dict[str, str]:
    """Return name -> version of Python, the core, the named distributions, and what these require (their engines)."""
    versions = {"python": platform.python_version()}
    for name in (*CORE, *sorted(set(distributions))):
        for each in (name, *(_list_required(name) if name not in CORE else ())):
            version = find_version(each)
            if version is not None:
                versions.setdefault(each, version)
    return versions


@functools.cache
def find_distribution(module: str) -> str | None:
    """Return the distribution that a module's top package belongs to, if it was installed."""
    found = metadata.packages_distributions().get(module.partition(".")[0], [])
    return found[0] if found else None


def _list_required(distribution: str) -> list[str]:
    """The direct requirements, extras left out."""
    try:
        lines = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return []
    return [match[0] for line in lines if not _EXTRA.search(line) and (match := _NAME.match(line))]


def find_version(distribution: str) -> str | None:
    """Return the version of a distribution; `None` where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None

"""Certificates that stand in the folders of records: what `vlgym check ID --json` wrote to `certificate*.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .files import open_inside
from .lines import as_name, as_text

PATTERN = "certificate*.json"
LARGEST = 4_000_000  # bytes
MOST_FILES, MOST_CHECKS = 500, 200


@dataclass(frozen=True)
class Certificate:
    """Of one environment.

    Attributes:
        file: name of the file.
        passed: whether everything holds that must.
        checks: name, `pass`, `warn` or `FAIL`, and evidence of each.
    """

    file: str
    passed: bool
    checks: list[tuple[str, str, str]]


def find_certificates(roots: Iterable[Path]) -> dict[str, Certificate]:
    """Return the certificates in some folders, not below them, by environment; of several, the one named last."""
    found: dict[str, Certificate] = {}
    for root in roots:
        for path in sorted(root.glob(PATTERN))[:MOST_FILES]:
            for said in _read(root, path.name):
                if env_id := as_name(said.get("id")):
                    found[env_id] = Certificate(path.name, said.get("passed") is True, list(_list_checks(said)))
    return found


def _read(root: Path, name: str) -> Iterator[Mapping[str, Any]]:
    try:
        with open_inside(root, name) as file:
            said = json.loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return
    yield from (each for each in (said if isinstance(said, list) else [said]) if isinstance(each, Mapping))


def _list_checks(said: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    checks = said.get("checks")
    for check in checks[:MOST_CHECKS] if isinstance(checks, list) else []:
        if isinstance(check, Mapping):
            word = "FAIL" if check.get("passed") is not True else "warn" if check.get("warning") is True else "pass"
            yield as_name(check.get("name")), word, as_text(check.get("evidence"))[:2000]

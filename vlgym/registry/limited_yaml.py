"""YAML from files and command lines, read by a safe loader and within limits.

A few lines of YAML may stand for billions of nodes by aliases, or nest so deep that the process dies of reading them.
"""

from __future__ import annotations

from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The fastest safe loader that there is."""

MOST_CHARACTERS = 4_000_000
DEEPEST = 40


def read_yaml(text: str, most_characters: int = MOST_CHARACTERS) -> Any:
    """Return the data of a YAML text.

    Raises:
        yaml.YAMLError: it is not YAML, too long, nests too deep, or has an alias.
    """
    if len(text) > most_characters:
        raise yaml.YAMLError(f"it has {len(text)} characters, more than the {most_characters} that are read")
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise yaml.YAMLError(f"it nests deeper than the {DEEPEST} levels that are read")
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError(f"it has an alias (*{event.anchor:.40}), which is not read")
    return yaml.load(text, Loader=LOADER)  # safe: a SafeLoader in both cases

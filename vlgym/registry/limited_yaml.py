"""YAML from files and command lines, read by a safe loader and within limits.

A few lines may stand for billions of nodes by aliases, or nest too deep for the process.
"""

from __future__ import annotations

from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the fastest safe one

MOST_CHARACTERS = 4_000_000
DEEPEST = 40


def read_yaml(text: str, most_characters: int = MOST_CHARACTERS) -> Any:
    """Return the data of a YAML text; `yaml.YAMLError` if it is long, deep, or has an alias."""
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

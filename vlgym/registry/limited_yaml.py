"""YAML from files and command lines, read by a safe loader and within limits.

A few lines may stand for billions of nodes by aliases, or nest too deep for the process.
"""

from typing import Any

import yaml

from ..errors import UserError, check_choice

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


def read_fields(
    value: Any, where: str, allowed: tuple[str, ...], required: tuple[str, ...], error: type[UserError] = UserError
) -> dict[str, Any]:
    """Return a mapping with these keys, or raise an error; `where` names file and place in it."""
    if not isinstance(value, dict):
        raise error(f"{where}: found {value!r:.60}; write 'key: value' pairs with {', '.join(allowed)}.")
    for name in value:
        check_choice(f"{where}: key", name, allowed, error)
    for name in required:
        if name not in value:
            raise error(f"{where} lacks {name!r}; add a line '{name}: ...'.")
    return value

"""YAML from files and command lines, read by a safe loader and within limits: size, depth, aliases.

A few lines of YAML may stand for billions of nodes, or nest so deep that reading them ends the process. What the data
mean is the caller's business.
"""

from __future__ import annotations

from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The fastest safe loader that there is."""

MOST_CHARACTERS = 4_000_000
DEEPEST = 40
MOST_ALIASES = 100
MOST_NODES = 1_000_000


class TooMuchYaml(yaml.YAMLError):
    """A text exceeds a limit. It is a `YAMLError`, so that callers say it as they say any other."""


def read_yaml(text: str, **limits: int) -> Any:
    """Return the data of a YAML text.

    Args:
        text: the text.
        **limits: as in `check_yaml`.

    Raises:
        yaml.YAMLError: not YAML, or beyond a limit.
    """
    check_yaml(text, **limits)
    return yaml.load(text, Loader=LOADER)  # safe: a SafeLoader in both cases


def check_yaml(
    text: str,
    *,
    most_characters: int = MOST_CHARACTERS,
    deepest: int = DEEPEST,
    most_aliases: int = MOST_ALIASES,
    most_nodes: int = MOST_NODES,
) -> None:
    """Refuse a text that is too long, nests too deep, has too many aliases, or stands for too many nodes once every
    alias is replaced by what it means.

    Raises:
        yaml.YAMLError: it is not YAML, or beyond a limit.
    """
    if len(text) > most_characters:
        raise TooMuchYaml(f"it has {len(text)} characters, more than the {most_characters} that are read")
    aliases, total = 0, 0
    sizes: dict[str, int] = {}  # nodes that an anchor stands for
    open_nodes: list[tuple[str | None, int]] = []  # anchor, and the total before it
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.AliasEvent):
            aliases += 1
            if aliases > most_aliases:
                raise TooMuchYaml(f"it has more than the {most_aliases} aliases that are read")
            if any(anchor == event.anchor for anchor, _ in open_nodes):
                raise TooMuchYaml(f"the alias *{event.anchor:.40} stands within what it means")
            total += sizes.get(str(event.anchor), 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, total))
            total += 1
            if len(open_nodes) > deepest:
                raise TooMuchYaml(f"it nests deeper than the {deepest} levels that are read")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor is not None:
                sizes[anchor] = total - before
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
        if total > most_nodes:
            raise TooMuchYaml(f"it stands for more than the {most_nodes} nodes that are read")

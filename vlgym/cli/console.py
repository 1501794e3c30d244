"""What the commands share on a terminal: JSON output, constructor arguments, chat messages as text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from ..errors import UserError
from ..terminal import open_console as open_console  # the commands find it here
from ..types import Message


def print_json(data: Any) -> None:
    """Write `data` as indented JSON and nothing else on standard output."""
    sys.stdout.write(json.dumps(data, indent=2) + "\n")


def read_arguments(pairs: Iterable[str]) -> dict[str, Any]:
    """Return constructor arguments from `name=value` strings; a value is read as JSON where it is JSON, else as text.

    Raises:
        UserError: a pair has no `=`.
    """
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--arg {pair!r} must look like name=value, for example --arg invalid_penalty=0.1.")
        try:
            arguments[name.strip()] = json.loads(value)
        except ValueError:
            arguments[name.strip()] = value
    return arguments


def write_messages(messages: Iterable[Message], image_names: dict[int, str] | None = None) -> str:
    """Return chat messages as text; an image stands as its size, and its file where `image_names` (by `id`) has one."""
    lines = []
    for message in messages:
        lines.append(f"[{message['role']}]")
        for part in message["content"]:
            if part["type"] == "image":
                height, width = part["image"].shape[:2]
                file = (image_names or {}).get(id(part["image"]))
                lines.append(f"<image {height}x{width}{f': {file}' if file else ''}>")
            else:
                lines.append(part["text"])
    return "\n".join(lines)


def plain_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return chat messages as JSON-able data; an image becomes its `[height, width]` in pixels."""
    return [
        {
            "role": message["role"],
            "content": [
                {"type": "image", "size": list(part["image"].shape[:2])} if part["type"] == "image" else dict(part)
                for part in message["content"]
            ],
        }
        for message in messages
    ]

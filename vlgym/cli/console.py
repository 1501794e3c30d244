"""What the commands share on a terminal: JSON output, constructor arguments, chat messages as text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from ..errors import UserError
from ..prompts import write_messages as write_messages
from ..terminal import open_console as open_console  # the commands find it here
from ..types import Message


def print_json(data: Any) -> None:
    """Write `data` as indented JSON and nothing else on standard output."""
    sys.stdout.write(json.dumps(data, indent=2) + "\n")


def read_arguments(pairs: Iterable[str], option: str = "--arg") -> dict[str, Any]:
    """Return arguments from `name=value` strings of an option; a value is read as JSON where it is JSON, else as text.

    Raises:
        UserError: a pair has no `=`.
    """
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UserError(f"{option} {pair!r} must look like name=value, for example {option} invalid_penalty=0.1.")
        try:
            arguments[name.strip()] = json.loads(value)
        except ValueError:
            arguments[name.strip()] = value
    return arguments


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

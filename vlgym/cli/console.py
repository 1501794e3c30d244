"""Shared parts of the commands on a terminal: JSON output, constructor arguments, chat messages as text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from ..env.arguments import read_arguments as read_arguments
from ..env.prompts import write_messages as write_messages
from ..terminal import open_console as open_console  # the commands find it here
from ..types import Message


def print_json(data: Any) -> None:
    """Write `data` as indented JSON and nothing else on standard output."""
    sys.stdout.write(json.dumps(data, indent=2) + "\n")


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

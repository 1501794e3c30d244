"""Shared parts of the commands: JSON output, constructor arguments, and `--config FILE`, whose TOML gives defaults."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..env.arguments import read_arguments as read_arguments
from ..env.prompts import write_messages as write_messages
from ..errors import UserError, nearest, plain_line
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


def read_config(context: typer.Context, path: Path | None) -> None:
    """Make the values of a file the defaults of the command's options.

    Raises:
        UserError: the file cannot be read, or holds what is no option.
    """
    if path is None:
        return
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"--config {path} cannot be read: {plain_line(str(error))}.") from None
    options = {
        word.removeprefix("--"): option
        for option in context.command.params
        for word in option.opts
        if word not in ("--config", "--help")
    }
    defaults: dict[str, Any] = {}
    for name, value in held.items():
        option = options.get(name.replace("_", "-"))
        if option is None:
            raise UserError(f"--config {path}: {name} is no option of {context.command.name}.{nearest(name, options)}")
        if option.multiple and isinstance(value, dict):  # type: ignore[attr-defined]
            value = [f"{key}={json.dumps(item)}" for key, item in value.items()]
        elif isinstance(value, dict):
            raise UserError(f"--config {path}: {name} is a table; write {name} = VALUE.")
        elif isinstance(value, list) and not option.multiple:  # type: ignore[attr-defined]
            value = ",".join(map(str, value))
        elif not isinstance(value, list) and not option.is_flag:  # type: ignore[attr-defined]
            value = str(value)  # is read as on the command line
        defaults[str(option.name)] = value
    context.default_map = {**(context.default_map or {}), **defaults}


Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", callback=read_config, is_eager=True, help="TOML file with these options, such as episodes = 10."
    ),
]

"""`--config FILE`: a TOML file holds the options of a command; what the command line says goes first."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UserError, nearest, plain_line


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

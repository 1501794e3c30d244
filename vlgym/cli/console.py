"""Shared parts of the commands: options, names of policies, and `--config FILE`, whose TOML gives defaults."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..env.arguments import read_arguments as read_arguments
from ..env.prompts import write_messages as write_messages
from ..errors import UserError, nearest, plain_line
from ..play.policies import Policy
from ..terminal import open_console as open_console  # the commands find it here

EnvId = Annotated[str, typer.Argument(metavar="ID", help="Environment id, for example vlgym/NumberLine-v1.")]
Arguments = Annotated[
    list[str] | None, typer.Option("--arg", metavar="NAME=VALUE", help="Constructor argument; may be repeated.")
]
EnvKwargs = Annotated[
    list[str] | None, typer.Option("--env-kwargs", metavar="NAME=VALUE", help="Constructor argument; may be repeated.")
]
PolicyArgs = Annotated[
    list[str] | None,
    typer.Option("--policy-arg", metavar="NAME=VALUE", help="Further option of the policy; may be repeated."),
]
Split = Annotated[str, typer.Option(help="train, val or test.")]


def split_names(text: str | None) -> list[str]:
    """Return the different names of a list with commas."""
    return list(dict.fromkeys(each.strip() for each in (text or "").split(",") if each.strip()))


def share_out(pairs: Iterable[str], names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return name of a policy -> its options, from `NAME.OPTION=VALUE`; `OPTION=VALUE` is everybody's."""
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in read_arguments(pairs, "--policy-arg").items():
        name, _, option = key.partition(".")
        for each in [name] if name in options else options:
            options[each][option if name in options else key] = value
    return options


def check_policy(player: Policy, *, pictures: bool = True) -> None:
    """Let a policy that answers from elsewhere say what is wrong, and say first who is asked."""
    if hasattr(player, "check"):
        if hasattr(player, "describe_session"):
            address = player.describe_session().get("base_url")
            open_console(stderr=True).print(f"asking {address} ...")
        player.check(pictures=pictures)


def read_config(context: typer.Context, path: Path | None) -> None:
    """Make the values of a file the defaults of the command's options.

    Raises:
        UserError: the file cannot be read, or holds what is no option.
    """
    if path is None:
        return
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"--config {path} cannot be read: {plain_line(str(error))}.") from None
    options: dict[str, Any] = {
        word.removeprefix("--"): option
        for option in context.command.params
        for word in option.opts
        if word not in ("--config", "--help")
    }
    defaults: dict[str, Any] = {}
    for name, value in settings.items():
        option = options.get(name.replace("_", "-"))
        if option is None:
            raise UserError(f"--config {path}: {name} is no option of {context.command.name}.{nearest(name, options)}")
        if option.multiple and isinstance(value, dict):
            value = [f"{key}={json.dumps(item)}" for key, item in value.items()]
        elif isinstance(value, dict):
            raise UserError(f"--config {path}: {name} is a table; write {name} = VALUE.")
        elif isinstance(value, list) and not option.multiple:
            value = ",".join(map(str, value))
        elif not isinstance(value, list) and not option.is_flag:
            value = str(value)  # is read as on the command line
        defaults[option.name] = value
    context.default_map = {**(context.default_map or {}), **defaults}


Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", callback=read_config, is_eager=True, help="TOML file with these options, such as episodes = 10."
    ),
]

"""Shared parts of the commands: options, policies, and the defaults of `--config FILE`."""

import json
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from ..env.arguments import read_arguments as read_arguments
from ..env.prompts import write_messages as write_messages
from ..errors import UserError, nearest, plain_line
from ..play.policies import Policy
from ..terminal import open_console as open_console

EnvId = Annotated[str, Argument(metavar="ID", help="Environment id, for example vlgym/NumberLine-v1.")]
Arguments = Annotated[
    list[str] | None, Option("--arg", metavar="NAME=VALUE", help="Constructor argument; may be repeated.")
]
EnvKwargs = Annotated[
    list[str] | None, Option("--env-kwargs", metavar="NAME=VALUE", help="Constructor argument; may be repeated.")
]
PolicyArgs = Annotated[
    list[str] | None,
    Option("--policy-arg", metavar="NAME=VALUE", help="Further option of the policy; may be repeated."),
]
Split = Annotated[str, Option(help="train, val or test.")]


def split_names(text: str | None) -> list[str]:
    """Return the different names of a list with commas."""
    return list(dict.fromkeys(each.strip() for each in (text or "").split(",") if each.strip()))


def share_out(pairs: Iterable[str], names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return policy -> its options, from `NAME.OPTION=VALUE`; `OPTION=VALUE` is everybody's."""
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in read_arguments(pairs, "--policy-arg").items():
        name, _, option = key.partition(".")
        for each in [name] if name in options else options:
            options[each][option if name in options else key] = value
    return options


def check_policy(player: Policy, *, pictures: bool = True) -> None:
    """Let a policy that answers from elsewhere check itself; its address is printed first."""
    if hasattr(player, "check"):
        if hasattr(player, "describe_session"):
            address = player.describe_session().get("base_url")
            open_console(stderr=True).print(f"asking {address} ...")
        player.check(pictures=pictures)


@contextmanager
def closing_policies(players: Iterable[Any]) -> Iterator[None]:
    """Close the policies that can be closed, however the block ends."""
    try:
        yield
    finally:
        for player in players:
            if hasattr(player, "close"):
                player.close()


def read_config(context: typer.Context, path: Path | None) -> None:
    """Make a file's values the defaults of the command's options; `UserError` for a wrong file."""
    if path is None:
        return
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"--config {path} cannot be read: {plain_line(str(error))}.") from None

    # A value becomes the text that the command line would have, so that one rule reads both.
    flags = {word: option for option in context.command.params for word in option.opts}
    options: dict[str, Any] = {word.removeprefix("--"): option for word, option in flags.items()}
    options = {name: option for name, option in options.items() if name not in ("config", "help")}
    defaults: dict[str, Any] = {}
    for name, value in settings.items():
        option = options.get(name.replace("_", "-"))
        if option is None:
            hint = f"{context.command.name}.{nearest(name, options)}"
            raise UserError(f"--config {path}: {name} is no option of {hint}")
        if option.multiple and isinstance(value, dict):
            value = [f"{key}={json.dumps(item)}" for key, item in value.items()]
        elif isinstance(value, dict):
            raise UserError(f"--config {path}: {name} is a table; write {name} = VALUE.")
        elif isinstance(value, list) and not option.multiple:
            value = ",".join(map(str, value))
        elif not isinstance(value, list) and not option.is_flag:
            value = str(value)
        defaults[option.name] = value
    context.default_map = {**(context.default_map or {}), **defaults}


Config = Annotated[
    Path | None,
    Option(
        metavar="FILE", callback=read_config, is_eager=True, help="TOML file with these options, such as episodes = 10."
    ),
]

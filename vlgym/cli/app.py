"""The command line as a whole: built-in commands, commands of plugins, and how errors leave the program.

Exit status: 0 done; 1 the command found something wrong (a failed check, a stale file, a broken plugin); 2 the user can
fix the call or the installation (`UserError`, wrong usage); 130 interrupted. Only bugs show a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import pluggy
import typer

from .. import __version__, hookspecs
from ..errors import UserError
from ..plugins import GROUP, PluginRecord
from ..registry import Registry, get_registry
from .check_cmd import check
from .doctor import doctor
from .list_cmd import list_environments, show
from .play import play
from .registry_cmd import registry_app
from .suite_cmd import suite

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (`sys.argv` by default) and return its exit status."""
    try:
        build_app(get_registry())(args=None if arguments is None else list(arguments), prog_name="vlgym")
    except UserError as error:
        sys.stderr.write(f"vlgym: {error}\n")
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            sys.stderr.write("\nvlgym: interrupted.\n")
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def build_app(registry: Registry | None = None) -> typer.Typer:
    """Return the application: the built-in commands, then those that the plugins of `registry` add."""
    app = typer.Typer(
        name="vlgym",
        help="The RL4VLM Gym: environments that a vision-language model sees and answers in free text.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_common_options)
    app.command("list")(list_environments)
    app.command("show")(show)
    app.command("check")(check)
    app.command("play")(play)
    app.add_typer(registry_app, name="registry")
    app.command("suite")(suite)
    app.command("doctor")(doctor)
    for record in registry.plugins if registry is not None else ():
        if record.enabled and record.error is None and hasattr(record.module, "vlgym_commands"):
            _add_plugin_commands(app, record)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vlgym {__version__}")
        raise typer.Exit()


def _common_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


def _add_plugin_commands(app: typer.Typer, record: PluginRecord) -> None:
    """Let one plugin add its commands; it may neither replace one nor break the others."""
    scratch = typer.Typer()
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    manager.register(record.module)
    try:
        manager.hook.vlgym_commands(app=scratch)
    except Exception as error:  # a plugin may fail in any way; it must not take the command line with it
        _complain(record, f"vlgym_commands failed: {type(error).__name__}: {error}")
        return
    taken = {_name(item) for item in (*app.registered_commands, *app.registered_groups)}
    pairs: list[tuple[list[Any], list[Any]]] = [
        (app.registered_commands, scratch.registered_commands),
        (app.registered_groups, scratch.registered_groups),
    ]
    for kept, added in pairs:
        for item in added:
            if _name(item) in taken:
                _complain(record, f"its command {_name(item)!r} is left out, because there is one of that name.")
            else:
                kept.append(item)
                taken.add(_name(item))


def _name(item: Any) -> str:
    """The name that a registered command or group will have on the command line."""
    if isinstance(item.name, str):
        return item.name
    callback = getattr(item, "callback", None)
    if callable(callback):
        return callback.__name__.replace("_", "-").lower()
    instance = getattr(item, "typer_instance", None)
    name = getattr(getattr(instance, "info", None), "name", None)
    return name if isinstance(name, str) else ""


def _complain(record: PluginRecord, message: str) -> None:
    sys.stderr.write(f"vlgym: plugin {record.name} ({record.distribution}): {message}\n")


app = build_app()
"""The built-in commands alone, for the documentation; `main` adds those of plugins."""

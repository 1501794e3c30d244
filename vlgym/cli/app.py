"""The command line as a whole: its commands, and how errors leave the program.

Exit status: 0 done; 1 the command found something wrong (a failed check, a stale file, a broken plugin); 2 the user can
fix the call or the installation (`UserError`, wrong usage); 130 interrupted. Only bugs show a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from .. import __version__
from ..errors import UserError
from ..terminal import prepare_output
from .check_cmd import check
from .doctor import doctor
from .list_cmd import list_environments, show
from .play import play
from .registry_cmd import registry_app
from .suite_cmd import suite

INTERRUPTED = 130

app = typer.Typer(
    name="vlgym",
    help="The RL4VLM Gym: environments that a vision-language model sees and answers in free text.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("list")(list_environments)
app.command("show")(show)
app.command("check")(check)
app.command("play")(play)
app.add_typer(registry_app, name="registry")
app.command("suite")(suite)
app.command("doctor")(doctor)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (`sys.argv` by default) and return its exit status."""
    prepare_output()
    try:
        app(args=None if arguments is None else list(arguments), prog_name="vlgym")
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


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vlgym {__version__}")
        raise typer.Exit()


@app.callback()
def _common_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass

"""The command line as a whole: its commands and its error handling.

The table of exit statuses stands in `vlgym.errors`. Only bugs show a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from .. import __version__
from ..terminal import run_command
from .canary_cmd import canary
from .check_cmd import check
from .doctor import doctor
from .eval_cmd import evaluate
from .list_cmd import list_environments, show
from .new_plugin import new_plugin
from .play_cmd import play
from .records_cmd import compare, export, report
from .registry_cmd import registry_app
from .serve_cmd import serve
from .tournament_cmd import tournament
from .ui_cmd import ui

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
app.command("eval")(evaluate)
app.command("report")(report)
app.command("compare")(compare)
app.command("export")(export)
app.command("canary")(canary)
app.command("new-plugin")(new_plugin)
app.command("tournament")(tournament)
app.command("serve")(serve)
app.command("ui")(ui)
app.command("doctor")(doctor)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (`sys.argv` by default) and return its exit status."""
    words = None if arguments is None else list(arguments)
    return run_command("vlgym", lambda: app(args=words, prog_name="vlgym"))


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

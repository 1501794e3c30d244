"""The command line as a whole: its commands and its error handling.

The exit statuses stand in `vlgym.errors`. Only bugs show a traceback. `main` imports only the
command that is called.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperCommand

from .. import __version__
from ..terminal import run_command

# Module and function of each command, in the order of `vlgym --help`.
COMMANDS = {
    "list": ("list_cmd", "list_environments"), "show": ("list_cmd", "show"),
    "check": ("check_cmd", "check"), "play": ("play_cmd", "play_in_terminal"),
    "registry": ("registry_cmd", "write"), "eval": ("eval_cmd", "evaluate_policy"),
    "report": ("records_cmd", "report"), "compare": ("records_cmd", "compare"),
    "export": ("records_cmd", "export"), "verify": ("records_cmd", "verify"),
    "canary": ("check_cmd", "canary"), "new-plugin": ("new_plugin", "new_plugin"),
    "tournament": ("tournament_cmd", "tournament"), "serve": ("serve_cmd", "serve"),
    "ui": ("serve_cmd", "ui"), "doctor": ("doctor", "doctor"),
}  # fmt: skip


class Command(TyperCommand):
    """A command that refuses an option given twice, of which the last would count in silence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        order = self.make_parser(ctx).parse_args(list(args))[2]
        for option in order:
            if order.count(option) > 1 and not getattr(option, "multiple", False):
                flag = option.opts[0]
                ctx.fail(f"{flag} is given twice; give it once: {flag} {option.metavar or 'VALUE'}")
        return super().parse_args(ctx, args)


def build_app(only: str = "") -> typer.Typer:
    """Return the command line with all commands, or with one as the whole command line."""
    app = typer.Typer(
        help="The RL4VLM Gym: environments that a vision-language model sees and answers in free text.",
        name="vlgym", no_args_is_help=True, add_completion=False, rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )  # fmt: skip
    if not only:
        app.callback()(_common_options)
    for name in [only] if only else COMMANDS:
        module, function = COMMANDS[name]
        app.command(name, cls=Command)(getattr(import_module(f".{module}", __package__), function))
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (`sys.argv` by default) and return its exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)

    def run() -> Any:
        if words and words[0] in COMMANDS:  # alone, which is quicker
            return build_app(words[0])(args=words[1:], prog_name=f"vlgym {words[0]}")
        return build_app()(args=words, prog_name="vlgym")

    return run_command("vlgym", run)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vlgym {__version__}")
        raise typer.Exit()


def _common_options(
    version: Annotated[
        bool, Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass

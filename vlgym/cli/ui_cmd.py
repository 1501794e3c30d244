"""`vlgym ui`: the local web page; what it shows is made in `vlgym.ui`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..endpoint.messages import plain_address
from ..errors import UserError, check_choice, check_number, check_writable
from ..evaluation.policy_names import list_policies
from ..games.multi_game import PLAYERS
from ..registry.installing import import_extra
from .console import open_console, share_out

NEEDED = ("starlette", "uvicorn")
DEFAULT = Path("runs")
NAME = re.compile(r"[\w-]{1,80}")


def ui(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FOLDER]...", help="Folders of records, at any depth; default ./runs where it exists."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, help="Port; 0 takes a free one.")] = 8421,
    out: Annotated[Path, typer.Option(help="Folder for the games that you play.")] = Path("runs/human"),
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SPEC", help="Policy (as of `vlgym eval`) that may hold other seats by this name; repeatable."
        ),
    ] = None,
    policy_arg: Annotated[
        list[str] | None,
        typer.Option("--policy-arg", metavar="NAME.OPTION=VALUE", help="Option of one, such as m.base_url=URL."),
    ] = None,
) -> None:
    """Watch recorded episodes, look at the environments and play them, in a web browser."""
    check_number("--port", port, 0, 65535)
    check_writable("--out", out)
    folders = paths or ([DEFAULT] if DEFAULT.is_dir() else [])
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is not a folder. Name one that `vlgym eval` or a training run wrote.")
    policies = _read_policies(policy or [], policy_arg or [])
    for module in NEEDED:
        import_extra(module, "ui", "The web page")
    from ..ui.site import serve

    def say(address: str) -> None:
        open_console().print(f"{address}  (Ctrl-C ends it)", soft_wrap=True)

    serve([path.resolve() for path in folders], out, port, say, policies)


def _read_policies(pairs: Iterable[str], options: Iterable[str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return name -> policy and its options."""
    policies: dict[str, str] = {}
    for pair in pairs:
        name, equals, spec = pair.partition("=")
        if not equals or not NAME.fullmatch(name) or name in (*policies, "self", *PLAYERS):
            raise UserError(
                f"--policy {plain_address(pair)!r} must be NAME=SPEC with a new NAME, such as model=openai:MODEL."
            )
        check_choice("--policy", spec.partition(":")[0], list_policies())
        policies[name] = spec
    return {name: (policies[name], given) for name, given in share_out(options, policies).items()}

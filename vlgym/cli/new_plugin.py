"""`vlgym new-plugin`: a pip package with one environment, ready to be changed into your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import open_console


def new_plugin(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, for example tea-room.")],
    wrap: Annotated[
        str | None, typer.Option(metavar="GYM_ID", help="Wrap this Gymnasium environment (discrete actions).")
    ] = None,
    actions: Annotated[
        str, typer.Option(metavar="WORD,WORD,...", help="With --wrap: words for its actions, from the first on.")
    ] = "",
    multi_agent: Annotated[
        bool, typer.Option("--multi-agent", help="Write a game of two agents (docs/games.md).")
    ] = False,
    out: Annotated[Path, typer.Option(help="The package's folder, vlgym-NAME, is made in here.")] = Path("."),
) -> None:
    """Write a pip package with an environment, its card, oracle and tests that passes `vlgym check` as it is."""
    from ..scaffold import write_plugin

    made = write_plugin(name, out, wrap, [word for word in actions.split(",") if actions], multi_agent=multi_agent)
    page = "games.md" if multi_agent else "write-a-plugin.md"
    lines = (
        f"{made.folder} is written. Next:",
        f"  pip install -e {made.folder}",
        f"  vlgym play {made.env_id}",
        f"  vlgym check {made.env_id}",
        f"  (cd {made.folder} && pytest)",
        f"  python -m baselines.vldac --env {made.env_id}",
        f"The rules are in {made.folder / 'src'}; docs/{page} explains them.",
    )
    console = open_console()
    console.print("\n".join(lines), soft_wrap=True)

"""`vlgym tournament`: policies play a game of several agents against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..endpoint.messages import plain_address
from ..env.arguments import read_arguments
from ..env.seeding import SPLITS
from ..errors import UserError, check_choice, check_writable, plain_line
from ..evaluation.policy_names import list_policies, make_policy
from ..games.ratings import rate
from ..games.several import open_table
from ..games.standings import write_markdown, write_tables
from ..games.tournament import GamePlayer, Result, Tournament
from ..terminal import open_progress
from .console import open_console
from .eval_cmd import check_policy

PLAIN = ("idle", "random", "oracle", "human")
"""Policies that take no options."""


def tournament(
    policies: Annotated[
        list[str],
        typer.Argument(
            metavar="POLICY POLICY...",
            help="Who plays: random, oracle, search or what else the game has, openai:MODEL, hf:FOLDER-OR-NAME and all "
            "that `vlgym eval` takes; openai:MODEL@URL names its server, too.",
        ),
    ],
    env: Annotated[str, typer.Option(metavar="ID", help="A game of two agents (docs/games.md).")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for results, records and table.")],
    games: Annotated[
        int,
        typer.Option(min=1, max=1_000_000, help="Seeds of each pair; each is played twice, with the seats swapped."),
    ] = 20,
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    env_kwargs: Annotated[
        list[str] | None,
        typer.Option("--env-kwargs", metavar="NAME=VALUE", help="Constructor argument; may be repeated."),
    ] = None,
    policy_arg: Annotated[
        list[str] | None,
        typer.Option("--policy-arg", metavar="NAME=VALUE", help="Option of the models, such as base_url=URL."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the tournament in --out.")] = False,
) -> None:
    """Let policies play each other: every pair, the same seeds, both seatings; ratings with intervals."""
    check_choice("--split", split, SPLITS)
    if len(policies) < 2:
        raise UserError("A tournament needs two policies: vlgym tournament random oracle --env ID --out FOLDER.")
    labels = [plain_address(name) for name in policies]  # for tables and records
    if twice := [name for name in labels if labels.count(name) > 1]:
        raise UserError(f"{twice[0]} is named twice; a policy does not play against itself.")
    check_writable("--out", out)
    arguments, options = (
        read_arguments(env_kwargs or [], "--env-kwargs"),
        read_arguments(policy_arg or [], "--policy-arg"),
    )
    players: dict[str, Any] = {}
    known = {name for name in policies if name.partition(":")[0] in list_policies()}
    console = open_console(stderr=True)
    try:
        for label, name in zip(labels, policies, strict=True):
            own = name == "search" or (name not in known and name in open_table(env, **arguments).game.named_players)
            players[label] = GamePlayer(name) if own else make_policy(name, {} if name in PLAIN else options)
        for player in players.values():
            check_policy(player)
        played = Tournament(env, players, games, out, split=split, arguments=arguments, resume=resume)
        with open_progress(console) as progress:
            task = progress.add_task("games", total=played.total, completed=len(played.results))

            def count(result: Result) -> None:
                progress.advance(task)

            results = played.play(count)
    except KeyboardInterrupt:
        console.print(f"What was finished is kept in {out}. Go on with --resume.")
        raise
    finally:
        for player in players.values():
            if hasattr(player, "close"):
                player.close()
    ratings = rate(results)
    title = f"{env}, {games} seeds of {split}, each from both seats"
    write_tables(out, title, results, ratings)
    screen = open_console()
    screen.print(plain_line(title, 200))
    screen.print(write_markdown(title, results, ratings).split("\n", 2)[2])
    screen.print(f"table: {out / 'table.md'}; games to watch: vlgym ui {out}")

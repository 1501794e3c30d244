"""`vlgym tournament`: policies play a game of several agents against each other."""

import re
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from ..endpoint.client import plain_address
from ..env.seeding import SPLITS
from ..errors import UserError, check_choice, check_writable, plain_line
from ..evaluation.policy_names import PLAIN_POLICIES, list_policies, make_policy
from ..games.ratings import rate
from ..games.several import open_table
from ..games.standings import write_markdown, write_tables
from ..games.tournament import Tournament
from ..terminal import open_progress
from .console import EnvKwargs, Split, check_policy, closing_policies, open_console, read_arguments, share_out

NAMED = re.compile(r"([A-Za-z]\w*)=(.+)", re.DOTALL)


def tournament(
    policies: Annotated[list[str], Argument(metavar="[NAME=]POLICY...",
        help="Who plays: random, oracle, search or what else the game has, openai:MODEL, "
            "hf:FOLDER-OR-NAME and all that `vlgym eval` takes; openai:MODEL@URL names its "
            "server, too. One alone holds every seat.")],
    env: Annotated[str, Option(metavar="ID", help="A game of several agents (docs/games.md).")],
    out: Annotated[Path, Option(metavar="FOLDER", help="Folder for results, records and table.")],
    games: Annotated[int, Option(min=1, max=1_000_000,
        help="Seeds of each pair; each is played in every seating.")] = 20,
    split: Split = "test",
    env_kwargs: EnvKwargs = None,
    policy_arg: Annotated[list[str] | None, Option("--policy-arg", metavar="[NAME.]OPTION=VALUE",
        help="Option of the models, or of the one with this name; may be repeated.")] = None,
    resume: Annotated[bool, Option("--resume", help="Continue the tournament in --out.")] = False,
) -> None:  # fmt: skip
    """Let policies play each other: every pair, the same seeds, every seating; ratings with intervals."""
    check_choice("--split", split, SPLITS)
    named: list[Any] = [NAMED.fullmatch(each) or ("", plain_address(each), each) for each in policies]
    labels, specs = [each[1] for each in named], [each[2] for each in named]
    if twice := [name for name in labels if labels.count(name) > 1]:
        raise UserError(f"{twice[0]} is named twice; call each by a name: one={twice[0]} other={twice[0]}.")

    # Everything that can be wrong is checked before a model is loaded.
    check_writable("--out", out)
    arguments = read_arguments(env_kwargs or [], "--env-kwargs")
    options = share_out(policy_arg or [], labels)
    players: dict[str, Any] = {}
    console = open_console(stderr=True)
    try:
        with closing_policies(players.values()):
            own = open_table(env, **arguments).game.named_players
            for label, spec in zip(labels, specs, strict=True):
                theirs = spec in own and spec not in list_policies()
                own_options = {} if spec in PLAIN_POLICIES else options[label]
                players[label] = spec if theirs else make_policy(spec, own_options)
            for player in players.values():
                check_policy(player)
            played = Tournament(env, players, games, out, split=split, arguments=arguments, resume=resume)
            with open_progress(console) as progress:
                task = progress.add_task("games", total=played.total, completed=len(played.results))
                results = played.play(lambda _: progress.advance(task))
    except KeyboardInterrupt:
        console.print(f"What was finished is kept in {out}. Go on with --resume.")
        raise

    # Tables are written first, then printed from the same text.
    ratings = rate(results)
    title = f"{env}, {games} seeds of {split}, each in every seating"
    write_tables(out, title, results, ratings)
    screen = open_console()
    screen.print(plain_line(title, 200))
    screen.print(write_markdown(title, results, ratings).split("\n", 2)[2])
    screen.print(f"table: {out / 'table.md'}; games to watch: vlgym ui {out}")

"""The rating of a pool at the end of self-play: every pair plays each seed from both seats."""

from __future__ import annotations

from typing import Any

import torch

from vlgym.policies import OraclePolicy, Policy, RandomPolicy
from vlgym.tournament import Tournament, rate
from vlgym.tournament.play import GamePlayer
from vlgym.tournament.tables import is_cooperative, write_tables

from ..engine.engine import ModelPolicy
from .games import ONE_SEAT, Games
from .pool import Past, Pool

FOLDER = "rating"

MEMBERS = 5
"""Past models that are rated, at equal distances; all pairs play, so more would take long."""

OWN = {"random": RandomPolicy, "oracle": OraclePolicy}


def rate_pool(run: Any, games: Games) -> None:
    """Let the trained model, past ones and the game's own players meet, and write tables to `rating/` of the run.

    Nothing where `--pool.rating-games` is 0, or where a game is not for two. A rating that was stopped goes on.

    Args:
        run: a run of self-play that is finished.
        games: of it.
    """
    config = run.config
    if not config.pool.rating_games:
        return
    seats = {table.game.title: table.game.seats for table in games.tables}
    for env_id in seats:
        if seats[env_id] != 2:
            run.log.say(f"rating: {env_id} is not a game of two, so its pool is not rated")
            continue
        policy = ModelPolicy(run.weights.sampler, torch.Generator().manual_seed(config.seed), name="rated")
        players: dict[str, Policy] = {each.name: each for each in choose_members(games.pool, policy)}
        players |= {
            name: OWN[name]() if name in OWN else GamePlayer(name)
            for name in dict.fromkeys(["random", *config.pool.names()])
        }
        folder = run.out / FOLDER / f"update-{run.state.update:06d}" / env_id.split("/")[-1]
        arguments = {name: value for name, value in run.envs.kwargs.items() if name not in ONE_SEAT}
        tournament = Tournament(
            env_id, players, config.pool.rating_games, folder, arguments=arguments,
            resume=(folder / "results.jsonl").exists(),
        )  # fmt: skip
        with run.log.counting(f"rating {env_id.split('/')[-1]}", tournament.total) as advance:
            results = tournament.play(lambda _: advance())
        ratings = rate(results)
        write_tables(folder, f"{run.title}: rating", results, ratings)
        if is_cooperative(results):
            run.log.say(f"rating: both seats are paid the same; mean returns of the pairs: {folder / 'table.md'}")
            continue
        told = ", ".join(f"{each.name} {each.rating:+.0f} [{each.interval}]" for each in ratings)
        run.log.say(f"rating: {told}; {folder / 'table.md'}")


def choose_members(pool: Pool, policy: ModelPolicy) -> list[Past]:
    """The trained model, and past ones from the first to the newest."""
    updates = [member["update"] for member in pool.members]
    count = min(MEMBERS, len(updates))
    chosen = sorted({updates[round(i * (len(updates) - 1) / max(1, count - 1))] for i in range(count)})
    return [Past(pool, None, policy), *(Past(pool, update, policy) for update in chosen)]

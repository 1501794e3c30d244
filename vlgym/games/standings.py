"""The results of a tournament as Markdown and JSON."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..files import write_whole
from .ratings import Rating
from .tournament import DRAW, Result


def write_tables(folder: Path, title: str, results: Sequence[Result], ratings: Sequence[Rating]) -> None:
    """Write `table.md` and `table.json` into a folder."""
    write_whole(folder / "table.md", write_markdown(title, results, ratings))
    infinite = (math.inf, -math.inf)
    rows = [
        {name: None if value in infinite else value for name, value in asdict(rating).items()} for rating in ratings
    ]
    data = {
        "title": title, "games": len(results), "different_games": count_different(results),
        "cooperative": is_cooperative(results), "ratings": rows,
        "pairs": list_pairs(results, [each.name for each in ratings]),
    }  # fmt: skip
    write_whole(folder / "table.json", json.dumps(data, indent=2) + "\n")


def count_different(results: Sequence[Result]) -> int:
    """Return how many games differ in their moves or in who made them."""
    return len({(result.players, result.moves) for result in results})


def is_cooperative(results: Sequence[Result]) -> bool:
    """True if all seats were paid the same in every game, and not always nothing."""
    same = all(max(result.returns) - min(result.returns) <= DRAW for result in results)
    return same and any(abs(result.returns[0]) > DRAW for result in results)


def list_pairs(results: Sequence[Result], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return wins, draws, losses and mean returns of each pair, from the side of the first."""
    pairs = []
    for one, other in combinations(names, 2):
        games = [result for result in results if set(result.players) == {one, other}]
        if not games:
            continue
        points = [result.points(one) for result in games]
        returns, others = ([result.return_of(name) for result in games] for name in (one, other))
        pairs.append({
            "player": one, "other": other, "games": len(games), "wins": points.count(1.0),
            "draws": points.count(0.5), "losses": points.count(0.0),
            "return": float(np.mean(returns)), "other_return": float(np.mean(others)),
        })  # fmt: skip
    return pairs


def write_markdown(title: str, results: Sequence[Result], ratings: Sequence[Rating]) -> str:
    """Return the two tables: the players, and their pairs."""
    lines, pairs = [f"# {title}", ""], list_pairs(results, [each.name for each in ratings])

    # One player, or seats that are paid alike: ratings would mean nothing.
    if len(ratings) == 1:
        alone = [(each.name, each.games, f"{each.mean_return:+.3f}") for each in ratings]
        lines += _write_table("holds every seat | games | mean return", alone)
    elif is_cooperative(results):
        lines += ["All seats are paid the same in this game, so there are no ratings.", ""]
        together = [(f"{pair['player']} and {pair['other']}", pair["games"], f"{pair['return']:.3f}") for pair in pairs]
        lines += _write_table("pair | games | mean return", together)
    else:
        players = [(
            each.name, f"{each.rating:+.0f}", each.interval, each.games, f"{each.points:.3f}",
            f"{each.mean_return:+.3f}",
        ) for each in ratings]  # fmt: skip
        headers = "player | rating | 95 % interval | games | points | mean return"
        lines += _write_table(headers, players)
        lines += [
            "",
            f"{count_different(results)} of the {len(results)} games differ in their moves. "
            "Points: wins and half the draws, over games. "
            "Ratings: Bradley and Terry's model in Elo's units.",
            "",
        ]
        rows = [(
            f"{pair['player']} against {pair['other']}", pair["games"], pair["wins"], pair["draws"],
            pair["losses"], f"{pair['return']:+.3f}, {pair['other_return']:+.3f}",
        ) for pair in pairs]  # fmt: skip
        lines += _write_table("pair | games | wins | draws | losses | mean returns", rows)
    return "\n".join(lines) + "\n"


def _write_table(headers: str, rows: Sequence[Sequence[Any]]) -> list[str]:
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    rule = "|" + "---|" * len(headers.split("|"))
    return [f"| {headers} |", rule, *(f"| {' | '.join(row)} |" for row in cells)]

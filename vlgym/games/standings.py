"""The results of a tournament as Markdown and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..files import write_whole
from .ratings import Rating
from .tournament import DRAW, Result


def write_tables(folder: Path, title: str, results: Sequence[Result], ratings: Sequence[Rating]) -> None:
    """Write `table.md` and `table.json` into a folder."""
    write_whole(folder / "table.md", write_markdown(title, results, ratings))
    data = {
        "title": title, "games": len(results), "different_games": count_different(results),
        "cooperative": is_cooperative(results),
        "ratings": [
            {name: None if value in (math.inf, -math.inf) else value for name, value in asdict(rating).items()}
            for rating in ratings
        ],
        "pairs": list_pairs(results, [each.name for each in ratings]),
    }  # fmt: skip
    write_whole(folder / "table.json", json.dumps(data, indent=2) + "\n")


def count_different(results: Sequence[Result]) -> int:
    """Return how many games differ in their moves or in who made them."""
    return len({(result.players, result.moves) for result in results})


def is_cooperative(results: Sequence[Result]) -> bool:
    """True if all seats were paid the same in every game, and not always nothing: then nobody wins or loses."""
    same = all(max(result.returns) - min(result.returns) <= DRAW for result in results)
    return same and any(abs(result.returns[0]) > DRAW for result in results)


def list_pairs(results: Sequence[Result], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return wins, draws, losses and mean returns of each pair, from the side of the one that comes first."""
    pairs = []
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            games = [result for result in results if set(result.players) == {one, other}]
            points = [result.points(one) for result in games]
            if games:
                pairs.append(
                    {
                        "player": one, "other": other, "games": len(games), "wins": points.count(1.0),
                        "draws": points.count(0.5), "losses": points.count(0.0),
                        "return": float(np.mean([result.return_of(one) for result in games])),
                        "other_return": float(np.mean([result.return_of(other) for result in games])),
                    }
                )  # fmt: skip
    return pairs


def write_markdown(title: str, results: Sequence[Result], ratings: Sequence[Rating]) -> str:
    """Return the two tables: the players, and their pairs."""
    lines = [f"# {title}", ""]
    if len(ratings) == 1:
        lines += ["| holds every seat | games | mean return |", "|---|---|---|"]
        lines += [f"| {_cell(each.name)} | {each.games} | {each.mean_return:+.3f} |" for each in ratings]
        return "\n".join(lines) + "\n"
    if is_cooperative(results):
        lines += ["All seats are paid the same in this game, so there are no ratings.", ""]
        lines += ["| pair | games | mean return |", "|---|---|---|"]
        for pair in list_pairs(results, [each.name for each in ratings]):
            lines.append(
                f"| {_cell(pair['player'])} and {_cell(pair['other'])} | {pair['games']} | {pair['return']:.3f} |"
            )
        return "\n".join(lines) + "\n"
    lines += ["| player | rating | 95 % interval | games | points | mean return |", "|---|---|---|---|---|---|"]
    for each in ratings:
        lines.append(
            f"| {_cell(each.name)} | {each.rating:+.0f} | {each.interval} | {each.games} | "
            f"{each.points:.3f} | {each.mean_return:+.3f} |"
        )
    lines += [
        "",
        f"{count_different(results)} of the {len(results)} games differ in their moves. Points: wins and half the "
        "draws, over games. Ratings: Bradley and Terry's model in Elo's units.",
        "",
    ]
    lines += ["| pair | games | wins | draws | losses | mean returns |", "|---|---|---|---|---|---|"]
    for pair in list_pairs(results, [each.name for each in ratings]):
        lines.append(
            f"| {_cell(pair['player'])} against {_cell(pair['other'])} | {pair['games']} | {pair['wins']} | "
            f"{pair['draws']} | {pair['losses']} | {pair['return']:+.3f}, {pair['other_return']:+.3f} |"
        )
    return "\n".join(lines) + "\n"


def _cell(name: str) -> str:
    """A name inside a table."""
    return name.replace("|", "\\|").replace("\n", " ")

"""Comparison of two runs on the same episodes: wins of one that the other lost, and tests against chance.

Episodes are paired by part, item, seed and repeat; parts that were not played under equal conditions are refused.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..play.trajectory import find_differences, without_none
from .compute import describe_difference, find_bounds, returns_of, won
from .records import PICTURES, Episode, Part, Run, read_episodes, read_run
from .sampling import Groups, average_intervals, mean_interval, pooled_mean

CONDITIONS = (
    "class", "arguments", "spec_hash", "prompt_hash", "prompt_version", "parser", "parser_version", "parser_settings",
    "reply_ends", "history", "changed",
)  # fmt: skip
"""Fields of run.json that are equal if two parts are the same task."""

Pair = tuple[str, int | None, int]
"""Item (as JSON), seed and repeat."""

Played = dict[str, list[Episode]]


def compare_runs(folders: Sequence[Path | str]) -> dict[str, Any]:
    """Return the comparison of each two of the runs, as plain data.

    `runs` holds their names; `pairs` for each two of them `first`, `second`, `parts` and `overall`. Differences are
    first minus second.

    Raises:
        UserError: fewer than two folders, nothing in common, or a part was played under different conditions.
        TrajectoryError: a folder is no evaluation, or a record is malformed.
    """
    if len(folders) < 2:
        raise UserError("Comparing takes two folders or more, each what `vlgym eval --out` wrote.")
    runs = [read_run(folder) for folder in folders]
    for first, second in combinations(runs, 2):
        check_comparable(first, second)
    played = [read_episodes(run) for run in runs]
    names = name_runs(runs)
    pairs = [
        {"first": names[i], "second": names[j], **_compare(runs[i], runs[j], played[i], played[j])}
        for i, j in combinations(range(len(runs)), 2)
    ]
    return {"runs": names, "pairs": without_none(pairs)}


def name_runs(runs: Sequence[Run]) -> list[str]:
    """Return a name for each run: the policy's where no other has the same, else its folder."""
    policies, folders = [run.policy for run in runs], [run.folder.resolve().name for run in runs]
    return [
        policy if policies.count(policy) == 1 else folder if folders.count(folder) == 1 else str(run.folder)
        for run, policy, folder in zip(runs, policies, folders, strict=True)
    ]


def check_comparable(first: Run, second: Run) -> None:
    """Check that two runs have parts in common, and these were played under equal conditions."""
    where = f"{first.folder} and {second.folder} cannot be compared:"
    if first.split != second.split:
        raise UserError(f"{where} one played split {first.split}, the other {second.split}.")
    common = first.parts.keys() & second.parts.keys()
    if not common:
        raise UserError(f"{where} no part of one is in the other ({', '.join([*first.parts][:3])} ...).")
    wrong = []
    for key in sorted(common):
        a, b = ({name: run.parts[key].entry.get(name) for name in CONDITIONS} for run in (first, second))
        if names := find_differences(a, b):
            wrong.append(f"{key} differs in {', '.join(names)}")
    if wrong:
        raise UserError(f"{where} {'; '.join(wrong)}. Play one of them again, or compare what is equal.")


def _compare(first: Run, second: Run, ours: Played, theirs: Played) -> dict[str, Any]:
    parts, success, places, discordant = {}, [], [], [0, 0]
    for key in [key for key in first.parts if key in second.parts]:
        part = first.parts[key]
        sides = [_by_pair(run.parts[key], played[key]) for run, played in ((first, ours), (second, theirs))]
        both = [pair for pair in sides[0] if pair in sides[1]]
        row: dict[str, Any] = {
            "env_id": part.env_id,
            "pairs": len(both),
            "only_first": len(sides[0]) - len(both),
            "only_second": len(sides[1]) - len(both),
        }
        if both:
            wins, returns = ([_group(side, both, value) for side in sides] for value in (won, returns_of))
            row["success"] = _describe(wins, shares=True)
            row["return"] = _describe(returns, shares=False)
            row["won_by_first"] = _list_won(part, sides[0], sides[1], both)
            row["won_by_second"] = _list_won(second.parts[key], sides[1], sides[0], both)
            lists = (row["won_by_first"], row["won_by_second"])
            row["mcnemar_p"] = find_mcnemar_p(*map(len, lists))
            row["success"] = agree(row["success"], row["mcnemar_p"])
            row["repeated"] = len(both) > len(wins[0])
            if part.pictures == PICTURES[0]:
                success.append(row["success"])
                discordant = [total + len(found) for total, found in zip(discordant, lists, strict=True)]
                if (width := _find_width(part)) is not None:
                    places.append(_scale(returns, width))
        parts[key] = row
    others = {
        "first": [key for key in first.parts if key not in second.parts],
        "second": [key for key in second.parts if key not in first.parts],
    }
    return {"parts": parts, "only_parts": others, "overall": _sum_up(success, places, discordant)}


def find_mcnemar_p(first: int, second: int) -> float:
    """Return the two-sided p value of McNemar's exact test.

    Args:
        first: pairs that the first won and the second lost.
        second: pairs that the second won and the first lost.
    """
    trials = first + second
    logs = [
        math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) - trials * math.log(2)
        for k in range(max(first, second), trials + 1)
    ]
    return min(1.0, 2 * math.fsum(map(math.exp, logs)))


def agree(success: Mapping[str, Any], p: float) -> dict[str, Any]:
    """Return a difference whose interval reaches 0 where McNemar's exact test does not reject at 5 %.

    Newcombe's interval is approximate: of two pairs, both won by one side, it leaves out 0, while p is 0.5.
    """
    reach = {"low": min(success["low"], 0.0), "high": max(success["high"], 0.0)} if p >= 0.05 else {}
    return {**success, **reach}


def write_play_command(part: Mapping[str, Any]) -> str:
    """Return the command that plays an episode of a comparison's list by hand."""
    words = ["vlgym", "play", part["env_id"], "--seed", str(part["seed"])]
    for name, value in part["arguments"].items():
        words += ["--arg", f"{name}={json.dumps(value)}"]
    return shlex.join(words)


def _by_pair(part: Part, episodes: Sequence[Episode]) -> dict[Pair, Episode]:
    items = [json.dumps(item, sort_keys=True) for item in part.items]
    return {
        (items[episode[0].episode // part.repeats // part.seeds], episode[0].seed, episode[0].repeat): episode
        for episode in episodes
    }


def _group(side: Mapping[Pair, Episode], pairs: Sequence[Pair], value: Any) -> dict[int, list[float]]:
    """Values by seed, numbered in the order of the pairs, which is the same on both sides."""
    numbers: dict[tuple[str, int | None], int] = {}
    groups: dict[int, list[float]] = {}
    for item, seed, repeat in pairs:
        groups.setdefault(numbers.setdefault((item, seed), len(numbers)), []).append(value(side[item, seed, repeat]))
    return groups


def _describe(sides: Sequence[Groups], *, shares: bool) -> dict[str, Any]:
    first, second = sides
    return {
        "first": pooled_mean(first),
        "second": pooled_mean(second),
        **describe_difference(first, second, shares=shares),
    }


def _list_won(
    part: Part, ours: Mapping[Pair, Episode], theirs: Mapping[Pair, Episode], pairs: Sequence[Pair]
) -> list[dict[str, Any]]:
    """The episodes that this side won and the other lost."""
    planner = {} if part.planner == "online" else {"planner": part.planner}
    return [
        {
            "env_id": part.env_id,
            "seed": seed,
            "repeat": repeat,
            "episode": ours[item, seed, repeat][0].episode,
            "arguments": {**json.loads(item), **planner},
        }
        for item, seed, repeat in pairs
        if won(ours[item, seed, repeat]) and not won(theirs[item, seed, repeat])
    ]


def _find_width(part: Part) -> float | None:
    bounds = find_bounds(part)
    if not {"floor", "ceiling"} <= bounds.keys():
        return None
    width = bounds["ceiling"]["return"] - bounds["floor"]["return"]
    return width if width > 0 else None


def _scale(sides: Sequence[Groups], width: float) -> dict[int, list[float]]:
    """Return the differences of returns in units of the way from floor to ceiling."""
    first, second = sides
    return {seed: [(a - b) / width for a, b in zip(first[seed], second[seed], strict=True)] for seed in first}


def _sum_up(
    success: Sequence[Mapping[str, Any]], places: Sequence[Groups], discordant: Sequence[int]
) -> dict[str, Any]:
    """Return the results over the parts with their pictures, each counting once."""
    if not success:
        return {"parts": 0}
    low, high = average_intervals([(row["difference"], row["low"], row["high"]) for row in success])
    overall: dict[str, Any] = {
        "parts": len(success),
        "success": {
            "first": sum(row["first"] for row in success) / len(success),
            "second": sum(row["second"] for row in success) / len(success),
            "difference": sum(row["difference"] for row in success) / len(success),
            "low": low,
            "high": high,
        },
        "won_by_first": discordant[0],
        "won_by_second": discordant[1],
        "mcnemar_p": find_mcnemar_p(*discordant),
    }
    overall["success"] = agree(overall["success"], overall["mcnemar_p"])
    if places:
        ends = mean_interval(*places) or (None, None)
        difference = sum(map(pooled_mean, places)) / len(places)
        overall["normalized"] = {"difference": difference, "low": ends[0], "high": ends[1], "parts": len(places)}
    return overall

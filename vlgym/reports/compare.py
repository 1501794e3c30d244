"""Comparison of two runs on the same episodes: wins of one alone, and tests against chance.

Episodes are paired by part, item, seed and repeat. Parts of unequal conditions are refused.
"""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..play.controls import SHOWN
from ..play.trajectory import find_differences, without_none
from .compute import (
    Pair,
    describe_mean,
    describe_pairs,
    describe_replies,
    find_foreign,
    group_pairs,
    index_pairs,
    normalize,
    returns_of,
    subtract,
    won,
)
from .records import Episode, RecordedPart, RecordedRun, read_run
from .sampling import Groups, average_intervals
from .verification import CARD_FIELDS, is_verified

CONDITIONS = (*CARD_FIELDS, "prompt_hash", "history", "changed")  # equal for the same task


def compare_runs(folders: Sequence[Path | str]) -> dict[str, Any]:
    """Return the comparison of each two of the runs, as plain data.

    `runs` holds their names, `pairs` for each two of them `first`, `second`, `verified`, `foreign`,
    `parts` and `overall`. Differences are first minus second.

    Raises:
        UserError: fewer than two folders, nothing in common, or conditions of a part differ.
        TrajectoryError: a folder is no evaluation, or a record is malformed.
    """
    if len(folders) < 2:
        raise UserError("Comparing takes two folders or more, each what `vlgym eval --out` wrote.")
    runs = [read_run(folder) for folder in folders]
    for first, second in combinations(runs, 2):
        check_comparable(first, second)
        if not first.parts.keys() & second.parts.keys():
            keys = ", ".join([*first.parts][:3])
            raise UserError(f"No part of {first.folder} is in {second.folder} ({keys} ...).")

    # Policies name runs where that tells them apart.
    names = name_runs(runs)
    pairs = [
        {
            "first": one,
            "second": two,
            "verified": {"first": is_verified(first), "second": is_verified(second)},
            "foreign": {"first": find_foreign(first), "second": find_foreign(second)},
            **_compare(first, second),
        }
        for (one, first), (two, second) in combinations(zip(names, runs, strict=True), 2)
    ]
    return {"runs": names, "pairs": without_none(pairs)}


def name_runs(runs: Sequence[RecordedRun]) -> list[str]:
    """Return a name for each run: the policy's where no other has the same, else its folder."""
    policies, folders = [run.policy for run in runs], [run.folder.resolve().name for run in runs]
    return [
        policy if policies.count(policy) == 1 else folder if folders.count(folder) == 1 else str(run.folder)
        for run, policy, folder in zip(runs, policies, folders, strict=True)
    ]


def check_comparable(first: RecordedRun, second: RecordedRun) -> None:
    """Check that two runs are of one split, and their common parts of equal conditions."""
    where = f"{first.folder} and {second.folder} cannot be compared:"
    if first.split != second.split:
        raise UserError(f"{where} one played split {first.split}, the other {second.split}.")
    wrong = []
    for key in sorted(first.parts.keys() & second.parts.keys()):
        a, b = ({name: run.parts[key].entry.get(name) for name in CONDITIONS} for run in (first, second))
        if names := find_differences(a, b):
            wrong.append(f"{key} differs in {', '.join(names)}")
    if wrong:
        raise UserError(f"{where} {'; '.join(wrong)}. Play one of them again, or compare what is equal.")


def _compare(first: RecordedRun, second: RecordedRun) -> dict[str, Any]:
    parts: dict[str, dict[str, Any]] = {}
    names = ("first", "second")
    places = []
    for key in [key for key in first.parts if key in second.parts]:
        part = first.parts[key]
        sides = [index_pairs(run.parts[key], run.played[key]) for run in (first, second)]
        both = [pair for pair in sides[0] if pair in sides[1]]
        row = parts[key] = {
            "env_id": part.env_id,
            "pairs": len(both),
            "only_first": len(sides[0]) - len(both),
            "only_second": len(sides[1]) - len(both),
        }
        if not both:
            continue

        # Only episodes that both have ended are compared, seed by seed.
        wins = [group_pairs(side, both, won) for side in sides]
        returns = [group_pairs(side, both, returns_of) for side in sides]
        lists = [_list_won(second.parts[key] if i else part, sides[i], sides[1 - i], both) for i in (0, 1)]
        row["mcnemar_p"] = find_mcnemar_p(*map(len, lists))
        row["success"] = agree(describe_pairs(wins, names, shares=True), row["mcnemar_p"])
        row["return"] = describe_pairs(returns, names, shares=False)
        row["won_by_first"], row["won_by_second"] = lists
        row["replies"] = {
            name: describe_replies(run.parts[key], [side[pair] for pair in both])
            for name, run, side in zip(names, (first, second), sides, strict=True)
        }
        row["repeated"] = len(both) > len(wins[0])
        one, two = (normalize(part, values) for values in returns)
        if part.pictures == SHOWN and one and two:
            places.append(subtract(one, two))

    # Parts of one run alone are named, and count nowhere.
    alone = (first.parts.keys() - second.parts.keys(), second.parts.keys() - first.parts.keys())
    others = dict(zip(names, map(sorted, alone), strict=True))
    shown = [row for key, row in parts.items() if first.parts[key].pictures == SHOWN]
    counted = [row for row in shown if row["pairs"]]
    return {"parts": parts, "only_parts": others, "overall": _sum_up(counted, places)}


def find_mcnemar_p(first: int, second: int) -> float:
    """Return the two-sided p value of McNemar's exact test of the pairs that one side alone won."""
    trials = first + second
    tail = sum(math.comb(trials, k) for k in range(max(first, second), trials + 1))
    return min(1.0, 2 * tail / 2**trials)


def agree(success: Mapping[str, Any], p: float) -> dict[str, Any]:
    """Return a difference whose interval reaches 0 where McNemar's test does not reject at 5 %.

    Newcombe's interval is approximate: of two pairs that one side won, it leaves out 0.
    """
    reach = {"low": min(success["low"], 0.0), "high": max(success["high"], 0.0)} if p >= 0.05 else {}
    return {**success, **reach}


def write_play_command(part: Mapping[str, Any]) -> str:
    """Return the command that plays an episode of a comparison's list by hand."""
    words = ["vlgym", "play", part["env_id"], "--seed", str(part["seed"])]
    for name, value in part["arguments"].items():
        words += ["--arg", f"{name}={json.dumps(value)}"]
    return shlex.join(words)


def _list_won(
    part: RecordedPart, ours: Mapping[Pair, Episode], theirs: Mapping[Pair, Episode], pairs: Sequence[Pair]
) -> list[dict[str, Any]]:
    planner = {} if part.planner == "online" else {"planner": part.planner}
    return [
        {
            "env_id": part.env_id, "seed": seed, "repeat": repeat,
            "episode": ours[item, seed, repeat][0].episode, "arguments": {**json.loads(item), **planner},
        }
        for item, seed, repeat in pairs
        if won(ours[item, seed, repeat]) and not won(theirs[item, seed, repeat])
    ]  # fmt: skip


def _sum_up(rows: Sequence[Mapping[str, Any]], places: Sequence[Groups]) -> dict[str, Any]:
    """Return the means over the parts with their pictures, each counting once."""
    if not rows:
        return {"parts": 0}
    success = [row["success"] for row in rows]
    low, high = average_intervals([(row["difference"], row["low"], row["high"]) for row in success])
    sides = ("first", "second", "difference")
    means = {name: sum(row[name] for row in success) / len(rows) for name in sides}

    # The exact test has the last word on the interval.
    discordant = [sum(len(row[side]) for row in rows) for side in ("won_by_first", "won_by_second")]
    p = find_mcnemar_p(*discordant)
    return {
        "parts": len(rows),
        "success": agree({**means, "low": low, "high": high}, p),
        "won_by_first": discordant[0],
        "won_by_second": discordant[1],
        "mcnemar_p": p,
        "normalized": describe_mean(places, "difference"),
    }

"""All numbers of a run's report: a pure function of its records and of registry.yaml's bounds.

Nothing depends on the clock, so two runs with equal replies have equal reports.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from pathlib import Path
from statistics import fmean
from typing import Any

from ..evaluation.plan import name_part
from ..evaluation.run import MILLION
from ..evaluation.summary import changes_bounds
from ..parsers import AutoParser
from ..play.controls import SHOWN
from ..play.trajectory import without_none
from ..registry import get_registry
from ..registry.registry_file import find_suite_parts
from ..sight.blind_gap import find_scale
from ..types import MODEL_STATUSES, StepRecord
from .records import Episode, RecordedPart, RecordedRun, read_run
from .sampling import (
    Groups,
    average_intervals,
    mean_interval,
    pooled_mean,
    share_difference_interval,
    standard_error,
    success_interval,
    summarize_items,
)

FORMAT = 1

Pair = tuple[str, int | None, int]  # item (as JSON), seed and repeat
LEAST = ("floor", "blind")  # zero of a normalized score, and zero of a sight score


def compute_report(run: RecordedRun | Path) -> dict[str, Any]:
    """Return the report of a run, or of its folder, as plain data; what has no value is left out.

    `parts` holds a row for each part, `overall` means over the parts whose pictures were shown,
    `sight` the loss of each control, `spent` tokens and money, `foreign` the replies of others
    than the model, and `can_it_see` the verdict on the model's sight.

    Raises:
        TrajectoryError: the folder is no evaluation, or a record is malformed.
    """
    run = run if isinstance(run, RecordedRun) else read_run(run)
    prices = run.header.get("prices")
    parts = {key: _describe_part(part, run.played[key], prices) for key, part in run.parts.items()}
    every = [*chain(*chain(*run.played.values()))]
    return without_none({
        "format": FORMAT, "policy": run.header["policy"], "split": run.split, "seed": run.header.get("seed"),
        "prices": prices, "can_it_see": find_verdict(run.header), "parts": parts,
        "overall": _describe_all(run, prices), "sight": _compare_sight(run), "foreign": find_foreign(run),
        "spent": {"replies": len(every), **_count_tokens(every, prices)},
    })  # fmt: skip


def find_verdict(header: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what `can-it-see` found: `sees` and `warnings`; `None` where it did not run."""
    try:
        verdict = header["sessions"][-1]["can_it_see"]
        return {"sees": verdict["sees"], "warnings": [*map(str, verdict["warnings"])]}
    except (LookupError, TypeError):
        return None


def find_foreign(run: RecordedRun) -> dict[str, Any] | None:
    """Return how many replies are not the model's, by status, of how many; `None` where all are."""
    counts = count_kinds(record.status for record in chain(*chain(*run.played.values())))
    statuses = {status: count for status, count in counts.items() if status not in MODEL_STATUSES}
    return {"statuses": statuses, "replies": sum(counts.values())} if statuses else None


def find_bounds(part: RecordedPart) -> dict[str, dict[str, float]]:
    """Return `floor`, `ceiling` and, where it was recorded, `blind` of registry.yaml.

    A part with other arguments has the bounds of the suite that plays the same, if any.
    """
    if part.changed:
        values = part.arguments.items()
        arguments = {name: value for name, value in values if changes_bounds(part.env_id, {name: value})}
        items = [{**arguments, **item} for item in part.items]
        shares = find_suite_parts(part.env_id, part.planner, items)
        bounds = next((share["bounds"] for share in shares if "bounds" in share), None)
        return {"floor": {"return": bounds[0]}, "ceiling": {"return": bounds[1]}} if bounds else {}
    known = get_registry().known.get(part.env_id)
    return {name: known[name] for name in ("floor", "blind", "ceiling") if known and known.get(name)}


def returns_of(episode: Episode) -> float:
    """Return the undiscounted return of an episode."""
    return sum(record.reward for record in episode)


def won(episode: Episode) -> float:
    """Return 1 where the episode ended with success, else 0."""
    return float(episode[-1].success)


def group_by_seed(
    part: RecordedPart, episodes: Sequence[Episode], value: Callable[[Episode], float]
) -> dict[int, list[float]]:
    """Return a value of each episode, by the index of its seed."""
    groups: dict[int, list[float]] = {}
    for episode in episodes:
        groups.setdefault(episode[0].episode // part.repeats, []).append(value(episode))
    return groups


def _describe_part(
    part: RecordedPart, episodes: Sequence[Episode], prices: Mapping[str, float] | None
) -> dict[str, Any]:
    head: dict[str, Any] = {
        "env_id": part.env_id, "planner": part.planner, "pictures": part.pictures, "planned": part.total,
        "episodes": len(episodes), **find_bounds(part),
    }  # fmt: skip
    if not episodes:
        return head

    # Repeats of one seed depend on each other, so values are grouped by seed.
    records = [*chain(*episodes)]
    returns = group_by_seed(part, episodes, returns_of)
    return {
        **head,
        "seeds": len(returns),
        "repeats": part.repeats,
        "success": _describe_success(group_by_seed(part, episodes, won)),
        "return": {"mean": pooled_mean(returns), "se": standard_error(returns)},
        "score": _describe_score(part, episodes),
        "normalized": describe_mean([normalize(part, returns)]),
        "sight_score": _bounded(describe_mean([normalize(part, returns, "blind")])),
        "benchmark": _describe_benchmark(part, episodes),
        **describe_replies(part, episodes),
        "turns": {"mean": len(records) / len(episodes), "most": max(map(len, episodes))},
        "won_within": _won_within(episodes),
        **_count_tokens(records, prices),
    }


def describe_replies(part: RecordedPart, episodes: Sequence[Episode]) -> dict[str, Any]:
    """Return how a part's replies were read: invalid ones, `forms`, and replies of other kinds.

    `asked` is the prompt's form; `all_valid` is of episodes without an invalid reply.
    """
    records = [*chain(*episodes)]

    # What a server did makes no reply invalid.
    own = [record for record in records if record.status in MODEL_STATUSES]
    invalid = [record for record in own if record.invalid]
    numbers = {record.episode for record in invalid}
    valid = [episode for episode in episodes if episode[0].episode not in numbers]
    success = _describe_success(group_by_seed(part, valid, won)) if valid else {}
    return {
        "invalid": {
            "rate": len(invalid) / len(own) if own else 0.0,
            "codes": count_kinds(record.parse for record in invalid),
        },
        "forms": count_kinds(record.form for record in own if record.form),
        "asked": "tag" if (style := part.entry.get("parser")) == AutoParser.name else style,
        "all_valid": {**success, "episodes": len(valid)},
        "statuses": count_kinds(each.status for each in records if each.status != "model") or None,
        "refused": fmean(record.refused for record in records),
        "empty": fmean(not record.reply.strip() for record in records),
        "cut": fmean(record.cut for record in records),
        "env_errors": sum(record.parse == "env_error" for record in records),
        "replies": len(records),
    }


def count_kinds(kinds: Iterable[str]) -> dict[str, int]:
    """Return how often each of some names occurs, in the order of the names."""
    return dict(sorted(Counter(kinds).items()))


def normalize(part: RecordedPart, returns: Groups, least: str = "floor") -> dict[int, list[float]] | None:
    """Return `(return - least) / (ceiling - least)` of each episode; `None` without such bounds.

    `least` is `floor` (random play) for the normalized score, `blind` for the sight score.
    """
    if (scale := find_scale(find_bounds(part), least)) is None:
        return None
    low, high = scale
    return {seed: [(each - low) / (high - low) for each in values] for seed, values in returns.items()}


def _describe_success(groups: Groups) -> dict[str, Any]:
    low, high, trials = success_interval(groups)
    wins = int(sum(value for group in groups.values() for value in group))
    return {"rate": pooled_mean(groups), "low": low, "high": high, "wins": wins, "trials": trials}


def _describe_score(part: RecordedPart, episodes: Sequence[Episode]) -> dict[str, Any] | None:
    scored = [episode for episode in episodes if episode[-1].score is not None]
    if not scored:
        return None
    groups = group_by_seed(part, scored, score_of)
    return {"mean": pooled_mean(groups), "se": standard_error(groups), "episodes": len(scored)}


def score_of(episode: Episode) -> float:
    """Return the benchmark's own score of an episode; its return where there is none."""
    score = episode[-1].score
    return returns_of(episode) if score is None else score


def _bounded(described: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return mean and interval cut to [-1, 1], where a sight score lies."""
    if described is None:
        return None
    ends = {key: described[key] for key in ("mean", "low", "high") if described[key] is not None}
    return {**described, **{name: max(-1.0, min(1.0, value)) for name, value in ends.items()}}


def _describe_benchmark(part: RecordedPart, episodes: Sequence[Episode]) -> dict[str, Any] | None:
    """MageBench's protocol, over the items of which every repeat has ended."""
    if part.repeats == 1 and len(part.items) == 1:
        return None
    groups = group_by_seed(part, episodes, score_of)
    whole = {index: scores for index, scores in groups.items() if len(scores) == part.repeats}
    if not whole:
        return None
    counted = [episode for episode in episodes if episode[0].episode // part.repeats in whole]
    return {"items": len(whole), **summarize_items(list(whole.values()), counted)}


def _won_within(episodes: Sequence[Episode]) -> list[float]:
    """Share of episodes won within 1, 2, ... turns, up to the longest episode."""
    ends = Counter(len(episode) for episode in episodes if episode[-1].success)
    turns = range(1, max(map(len, episodes)) + 1)
    return [total / len(episodes) for total in accumulate(ends[turn] for turn in turns)]


def _describe_all(run: RecordedRun, prices: Mapping[str, float] | None) -> dict[str, Any]:
    """Means over the parts with pictures of which an episode ended, each part counting once."""
    sighted = {key: part for key, part in run.parts.items() if part.pictures == SHOWN}
    ended = {key: part for key, part in sighted.items() if run.played[key]}
    records = [*chain(*(episode for key in ended for episode in run.played[key]))]

    # A part counts once, whatever its number of episodes, and not at all where it says too little.
    success = [group_by_seed(part, run.played[key], won) for key, part in ended.items()]
    earned = {key: group_by_seed(part, run.played[key], returns_of) for key, part in ended.items()}
    scales = [[normalize(part, earned[key], least) for key, part in ended.items()] for least in LEAST]
    places, sights = map(leave_out_wide, scales)
    return {
        "parts": len(ended),
        "episodes": sum(len(run.played[key]) for key in ended),
        "planned": sum(part.total for part in sighted.values()),
        "success": describe_shares(success),
        "normalized": describe_mean(places),
        "sight_score": _bounded(describe_mean(sights)),
        "replies": len(records),
        **_count_tokens(records, prices),
    }


def leave_out_wide(strata: Sequence[Groups | None]) -> list[Groups | None]:
    """Return the parts, with `None` for each whose interval is wider than the way from floor to
    ceiling: it says nothing and would drown the others."""
    described = [describe_mean([groups]) for groups in strata]
    wide = [each is not None and each["low"] is not None and each["high"] - each["low"] > 1 for each in described]
    counts = [len(strata) == 1 or not each for each in wide]
    return [groups if count else None for groups, count in zip(strata, counts, strict=True)]


def describe_shares(strata: Sequence[Groups]) -> dict[str, Any] | None:
    """Return the mean of the shares of several parts, each counting once; `None` for no part."""
    if not strata:
        return None
    shares = [(pooled_mean(groups), *success_interval(groups)[:2]) for groups in strata]
    low, high = average_intervals(shares)
    mean = sum(share for share, _, _ in shares) / len(shares)
    return {"mean": mean, "low": low, "high": high, "parts": len(shares)}


def describe_mean(strata: Sequence[Groups | None], name: str = "mean") -> dict[str, Any] | None:
    """Return the mean of the means of strata by a name; strata that are `None` are left out."""
    members = [groups for groups in strata if groups is not None]
    if not members:
        return None
    low, high = mean_interval(*members) or (None, None)
    mean = sum(map(pooled_mean, members)) / len(members)
    return {name: mean, "low": low, "high": high, "parts": len(members)}


def _compare_sight(run: RecordedRun) -> list[dict[str, Any]]:
    """Return each control's loss against the part with pictures, on the seeds that both ended."""
    rows: list[dict[str, Any]] = []
    for key, part in run.parts.items():
        sighted = run.parts.get(name_part(part.env_id, part.planner, SHOWN))
        if part.pictures == SHOWN or sighted is None:
            continue

        # Only seeds that both parts have ended are compared.
        sides = [index_pairs(each, run.played[each.key]) for each in (sighted, part)]
        both = [pair for pair in sides[0] if pair in sides[1]]
        row = {"part": sighted.key, "control": key, "pictures": part.pictures, "pairs": len(both)}
        for name, value in (("success", won), ("return", returns_of)) if both else ():
            groups = [group_pairs(side, both, value) for side in sides]
            row[name] = describe_pairs(groups, ("shown", "control"), shares=value is won)
        rows.append(row)
    return rows


def index_pairs(part: RecordedPart, episodes: Sequence[Episode]) -> dict[Pair, Episode]:
    """Return a part's episodes by what makes them equal to those of another part."""
    items = [json.dumps(item, sort_keys=True) for item in part.items]
    length = part.repeats * part.episodes
    return {(items[each[0].episode // length], each[0].seed, each[0].repeat): each for each in episodes}


def group_pairs(
    side: Mapping[Pair, Episode], pairs: Sequence[Pair], value: Callable[[Episode], float]
) -> dict[int, list[float]]:
    """Return values by seed, numbered in the order of the pairs: the same on both sides."""
    numbers: dict[tuple[str, int | None], int] = {}
    groups: dict[int, list[float]] = {}
    for item, seed, repeat in pairs:
        number = numbers.setdefault((item, seed), len(numbers))
        groups.setdefault(number, []).append(value(side[item, seed, repeat]))
    return groups


def subtract(first: Groups, second: Groups) -> dict[int, list[float]]:
    """Return the differences of values on the same seeds."""
    return {seed: [a - b for a, b in zip(first[seed], second[seed], strict=True)] for seed in first}


def describe_pairs(sides: Sequence[Groups], names: tuple[str, str], *, shares: bool) -> dict[str, Any]:
    """Return the means of two sides on the same seeds, their difference and its 95 % interval.

    Shares get Newcombe's interval, others the bootstrap's, which draws pairs of values.
    """
    differences = subtract(*sides)
    interval = share_difference_interval(*sides) if shares else mean_interval(differences)
    low, high = interval or (None, None)
    means = dict(zip(names, map(pooled_mean, sides), strict=True))
    return {**means, "difference": pooled_mean(differences), "low": low, "high": high}


def _count_tokens(records: Sequence[StepRecord], prices: Mapping[str, float] | None) -> dict[str, Any]:
    """Tokens and money of the replies that say what they took; nothing where none does."""
    usages = [record.usage for record in records if record.usage is not None]
    if not usages:
        return {}
    prompt = sum(usage.prompt_tokens for usage in usages)
    reply = sum(usage.completion_tokens for usage in usages)
    counted: dict[str, Any] = {
        "prompt_tokens": {"total": prompt, "mean": prompt / len(usages)},
        "reply_tokens": {"total": reply, "mean": reply / len(usages)},
        "counted": len(usages),
    }
    if prices is not None:
        counted["cost"] = (prompt * prices["in"] + reply * prices["out"]) / MILLION
    return counted

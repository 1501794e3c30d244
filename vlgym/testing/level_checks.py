"""Difficulty levels: oracle and random policy play each, for registry.yaml and for a check."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import mean, stdev
from typing import Any

from ..env.spec import EnvSpec
from ..evaluation import Report, summarize
from ..play.policies import OraclePolicy, Policy, RandomPolicy
from ..sight.blind_policies import UNSEEN
from .measure import choosing_split, measure_blind
from .play_checks import is_unlikely
from .playing import digest_picture
from .subject import Subject, require

# Turns, about, of one policy on one level, and the fewest and the most episodes.
CHECK_TURNS, CHECK_EPISODES = 500, (6, 150)
RECORD_TURNS, RECORD_EPISODES = 3000, (20, 100)  # for registry.yaml
COMPARED_STARTS = 6  # seeds whose first pictures and texts are compared between levels


def check_levels(subject: Subject) -> str:
    """Levels get harder, and the oracle wins them all. It wins as often as the card promises, and
    no two levels begin alike.

    Harder means that, from each level to the next, the oracle's episodes get longer or random play
    wins less, within three standard errors, and that the last level is above the first.

    Sees: a level that cannot be won, levels in the wrong order, and a level that changes nothing.
    It plays 6 to 150 episodes of each level with either policy. Cannot see: a level that is harder
    for a reader of the picture alone, as smaller letters are.
    """
    spec = subject.spec
    if not spec.levels:
        return "the card has no levels"
    env = subject.make()
    count, split, starts = len(env.level_arguments), choosing_split(spec), set()
    stated = f"the card has {len(spec.levels)} levels, the class's level_arguments {count}"
    require(count == len(spec.levels), stated)
    for level in range(count):
        seeds = subject.seeds(COMPARED_STARTS, split=split)
        observations = [env.reset(seed=seed, options={"level": level})[0] for seed in seeds]
        starts.add(tuple((each["text"], digest_picture(each["image"])) for each in observations))
    env.close()
    require(len(starts) == count, f"{COMPARED_STARTS} seeds begin alike on two of the {count} levels")

    # The oracle wins each of them.
    played = play_levels(subject, split, CHECK_TURNS, *CHECK_EPISODES)
    for level, each in enumerate(played if spec.oracle != "none" else ()):
        wins = not is_unlikely(each["report"], spec.oracle_success)
        success, promise = each["oracle"], f"the card promises {spec.oracle_success}"
        require(wins, f"level {level}: oracle success {success}, {promise}")

    # They get harder for the oracle or for random play.
    lengths = [(each["length"], each["se"]) for each in played]
    errors = [math.sqrt(each["random"] * (1 - each["random"]) / each["episodes"]) for each in played]
    chances = [(-each["random"], error) for each, error in zip(played, errors, strict=True)]
    summary = "; ".join(f"{each['length']} turns, random {each['random']}" for each in played)
    flat = "neither the oracle's mean length rises over the levels nor random success falls"
    require(is_rising(lengths) or is_rising(chances), f"{flat}: {summary}")
    return f"{count} levels, {', '.join(str(each['episodes']) for each in played)} episodes: {summary}"


def measure_levels(spec: EnvSpec) -> list[dict[str, Any]]:
    """Return registry.yaml's figures of each level.

    They are the success of the oracle, of random play and of the best blind player (`blind`), the
    oracle's mean `length` in turns with its standard error `se` (without an oracle, those of random
    play), and `episodes`.
    """
    split = "test" if "test" in spec.splits else choosing_split(spec)
    played = play_levels(Subject(spec), split, RECORD_TURNS, *RECORD_EPISODES)
    for level, each in enumerate(played):
        each["blind"] = measure_blind_level(spec, level, split, each["episodes"])
    return [{name: value for name, value in each.items() if name != "report"} for each in played]


def measure_blind_level(spec: EnvSpec, level: int, split: str, episodes: int) -> float:
    """Return the success of the best blind player on a level; learners learn there."""
    there = Subject(spec, {**UNSEEN, "level": level})

    def play(policy: Policy, split: str, episodes: int) -> Report:
        return summarize(spec.id, policy.name, split, there.run(policy, split, episodes))

    def judge(policy: Policy) -> dict[str, float]:
        report = play(policy, split, episodes)
        return {"return": report.mean_return, "success": round(report.success, 4)}

    return float(measure_blind(spec, there.make, play, judge)["success"])


def play_levels(subject: Subject, split: str, turns: int, fewest: int, most: int) -> list[dict[str, Any]]:
    """Play each level with oracle and random policy; `report` and `length` are the oracle's."""
    spec, figures = subject.spec, []
    env = subject.make()
    limits = [arguments.get("max_turns", spec.max_turns) for arguments in env.level_arguments]
    env.close()
    for level, limit in enumerate(limits):
        there = Subject(spec, {**subject.kwargs, **UNSEEN, "level": level})
        count = max(fewest, min(most, turns // limit))
        random = there.run(RandomPolicy(), split, count)
        best = random if spec.oracle == "none" else there.run(OraclePolicy(fallback=True), split, count)
        report = summarize(spec.id, "oracle", split, best)
        lengths = [len(episode) for episode in best]
        figures.append({
            "oracle": None if spec.oracle == "none" else round(report.success, 4),
            "length": round(float(mean(lengths)), 2), "se": round(stdev(lengths) / math.sqrt(count), 2),
            "random": round(summarize(spec.id, "random", split, random).success, 4),
            "episodes": count, "report": report,
        })  # fmt: skip
    return figures


def is_rising(figures: list[tuple[float, float]]) -> bool:
    """True if no (value, standard error) is clearly below the one before, and the last is above."""
    steps = pairwise(figures)
    falls = any(later < value - 3 * math.hypot(se, other) for (value, se), (later, other) in steps)
    return not falls and figures[-1][0] > figures[0][0]

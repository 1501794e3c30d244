"""Measure what registry.yaml records of an environment, and check its levels.

The best blind policies on val are judged on test, and the best figures there are the blind floor;
return and success need not be one policy's.
"""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from statistics import mean, stdev
from typing import Any, TypeVar

from ..env import VLEnv
from ..env.seeding import episode_seed
from ..env.spec import EnvSpec
from ..evaluation import Report, evaluate, summarize
from ..play.policies import IdlePolicy, OraclePolicy, Policy, RandomPolicy
from ..registry.making import build
from ..registry.recorded import hash_texts
from ..sight.blind import Searcher
from ..sight.blind_learner import LEARNERS, SLOW_EPISODES, learn
from ..sight.blind_policies import UNSEEN, BlindPolicy, load_players, make_constant
from .fingerprint import measure_behaviour
from .play_checks import is_unlikely
from .playing import GarbagePolicy, digest_picture
from .subject import Subject, require

MOST_CONSTANTS = 20  # constant actions that are tried, at most
LISTED_STARTS = 8  # episodes at whose start the legal actions are looked at
CONSTANT_TURNS, CHOOSING_TURNS = 400, 2000  # turns, about, to choose among constants, then policies
JUDGED = 3  # blind policies of highest return, and of highest success, on val that are judged on test

# Turns, about, of one policy on one level, and the fewest and the most episodes.
CHECK_TURNS, CHECK_EPISODES = 500, (6, 150)
RECORD_TURNS, RECORD_EPISODES = 3000, (20, 100)  # for registry.yaml
COMPARED_STARTS = 6  # seeds whose first pictures and texts are compared between levels

P = TypeVar("P", bound=Policy)
Play = Callable[[Policy, str, int], Report]  # plays a number of episodes of a split with a policy


def measure_blind(spec: EnvSpec, make: Callable[[], VLEnv], play: Play, judge: Callable[[Policy], Any]) -> Any:
    """Play all blind policies on val, or on train without val, and return the blind floor. It has
    the best figures of those that did best there, and of random, idle and garbage play.

    `judge` plays a policy on the test split; it returns `return`, `se`, `success`, `episodes`.
    """
    plain: list[Policy] = [RandomPolicy(), IdlePolicy(), GarbagePolicy()]
    players: list[Policy] = [
        *list_constants(spec, make, play), BlindPolicy(Searcher.name, Searcher), *load_players(spec),
        *list_learners(spec, make),
    ]  # fmt: skip

    # A card with `figure_episodes` says that an episode is slow.
    most, judged = (SLOW_EPISODES, 1) if spec.figure_episodes else (100, JUDGED)
    episodes = max(4, min(most, CHOOSING_TURNS // spec.max_turns))
    reports = {policy: play(policy, choosing_split(spec), episodes) for policy in (*plain, *players)}

    # The best are chosen on one split and judged on another: luck does not count twice.
    best = find_best(plain, [reports[policy] for policy in plain])
    by_return = sorted(players, key=lambda policy: -reports[policy].mean_return)[:judged]
    by_success = sorted(players, key=lambda policy: -reports[policy].success)[:judged]
    figures = {policy: judge(policy) for policy in dict.fromkeys((*best, *by_return, *by_success))}
    earned = max((best[0], *by_return, *by_success), key=lambda policy: figures[policy]["return"])
    won = max((best[1], *by_return, *by_success), key=lambda policy: figures[policy]["success"])
    success = figures[won]["success"]
    return {**figures[earned], "success": success, "policy": earned.name, "success_policy": won.name}


def list_learners(spec: EnvSpec, make: Callable[[], VLEnv]) -> list[BlindPolicy]:
    """Return the blind players that learn, after they have learnt; none without a train split.

    A replaced version that needs system packages, so that its steps are slow, is not learnt.
    """
    learnt = "train" in spec.splits and not (spec.replaced_by and spec.system_requirements)
    return [BlindPolicy(name, learn(spec, make, name)) for name in LEARNERS] if learnt else []


def list_constants(spec: EnvSpec, make: Callable[[], VLEnv], play: Play) -> list[BlindPolicy]:
    """Return the constant actions that earn most and that win most, one or two.

    There are none if no action is legal at the start of most episodes.
    """
    actions = find_constants(spec, make)
    if not actions:
        return []
    policies = [make_constant(action) for action in actions]
    episodes = max(4, min(60, CONSTANT_TURNS // spec.max_turns))
    best = find_best(policies, [play(policy, choosing_split(spec), episodes) for policy in policies])
    return list(dict.fromkeys(best))


def find_constants(spec: EnvSpec, make: Callable[[], VLEnv]) -> list[str]:
    """Return the actions, `MOST_CONSTANTS` at most, that are legal at half of some starts."""
    legal: Counter[str] = Counter()
    with contextlib.closing(make()) as env:
        for index in range(LISTED_STARTS):
            env.reset(seed=episode_seed(spec.id, choosing_split(spec), index))
            order = env.legal_actions()
            legal.update(set(order))
    often = [action for action in legal if 2 * legal[action] >= LISTED_STARTS]
    places = {action: place for place, action in enumerate(order)}
    return sorted(often, key=lambda action: (places.get(action, len(places)), action))[:MOST_CONSTANTS]


def find_best(policies: Sequence[P], reports: Sequence[Report]) -> tuple[P, P]:
    """Return the policies of highest mean return and of highest success; the first of equals."""
    pairs = list(zip(policies, reports, strict=True))
    earned = max(pairs, key=lambda pair: pair[1].mean_return)[0]
    return earned, max(pairs, key=lambda pair: pair[1].success)[0]


def choosing_split(spec: EnvSpec) -> str:
    """Return the split on which blind policies are chosen."""
    return next((split for split in ("val", "train") if split in spec.splits), spec.splits[0])


# Most turns of a cheap episode: at random they took 0.001 to 0.2 s each on one core, and 0.7 s in a
# browser; longer ones took 0.3 to 2.5 s. The oracle took up to 2.9 s.
SHORT_TURNS = 100

# Episodes of a floor or a ceiling, of an environment with at most `SHORT_TURNS` turns and of others.
# A spec's `figure_episodes` goes first, where the turn limit says little about the time.
MANY_EPISODES, FEW_EPISODES = 400, 100


def measure_hashes(spec: EnvSpec, distribution: str) -> dict[str, Any]:
    """Return a registry entry's parts without long play: spec, hashes, fingerprint, pictures."""
    behaviour = measure_behaviour(partial(build, spec), spec)
    with contextlib.closing(build(spec)) as env:
        return {"distribution": distribution, "spec": spec, **hash_texts(env), **behaviour.to_entry()}


def measure_figures(spec: EnvSpec, on_episode: Callable[[object], None] | None = None) -> dict[str, Any]:
    """Return the parts of a registry entry that take long play: floor and ceiling (oracle).

    The floor is the best return of random, idle and garbage play, and their best success.
    `on_episode` is called after each of the episodes, `count_episodes` for each player.
    """
    oracle = OraclePolicy(fallback=True)
    ceiling = None if spec.oracle == "none" else play_figures(spec, oracle, on_episode)
    plain = (RandomPolicy(), IdlePolicy(), GarbagePolicy())
    players = [play_figures(spec, policy, on_episode) for policy in plain]
    best, success = max(players, key=lambda each: each["return"]), max(each["success"] for each in players)
    return {"floor": {**best, "success": success}, "ceiling": ceiling}


def measure_blind_floor(spec: EnvSpec, floor: dict[str, Any]) -> dict[str, Any]:
    """Return the blind floor: chosen on val, played on the test split; at least `floor`."""

    def play(policy: Policy, split: str, episodes: int) -> Report:
        return evaluate(spec.id, policy, split=split, episodes=episodes, num_envs=1, env_kwargs=UNSEEN)

    def judge(policy: Policy) -> dict[str, Any]:
        if isinstance(policy, (RandomPolicy, IdlePolicy, GarbagePolicy)):
            return dict(floor)
        return play_figures(spec, policy)

    return dict(measure_blind(spec, partial(build, spec, **UNSEEN), play, judge))


def play_figures(spec: EnvSpec, policy: Policy, on_episode: Callable[[object], None] | None = None) -> dict[str, Any]:
    """Return figures of a policy on the test split: return, standard error, success, episodes.

    It is shown no picture: drawing one can take most of a step.
    """
    episodes = count_episodes(spec)
    report = evaluate(spec.id, policy, episodes=episodes, num_envs=1, env_kwargs=UNSEEN, on_episode=on_episode)
    figures = {"return": report.mean_return, "se": report.return_se, "success": report.success}
    return {**{name: round(value, 4) for name, value in figures.items()}, "episodes": episodes}


def count_episodes(spec: EnvSpec) -> int:
    """Return the number of episodes by which a floor or a ceiling is measured."""
    return spec.figure_episodes or (MANY_EPISODES if spec.max_turns <= SHORT_TURNS else FEW_EPISODES)


def check_levels(subject: Subject) -> str:
    """Levels get harder, and the oracle wins them all. From each level to the next the oracle's
    episodes get longer or random play wins less, within three standard errors.

    Sees: a level that cannot be won, levels in the wrong order, and a level that changes nothing,
    in 6 to 150 episodes of each. Cannot see: a level that is harder for a reader of the picture
    alone, as smaller letters are.
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
    """Return registry.yaml's figures of each level: the success of the oracle, of random play and
    of the best blind player (`blind`), the oracle's mean `length` in turns with its standard error
    `se` (without an oracle, those of random play), and `episodes`."""
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

        # Without an oracle random play stands for it.
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

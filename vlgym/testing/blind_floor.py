"""Find out what can be won without the picture: choose among blind policies on one split, judge the choice on another.

Tried are random, idle and garbage play, the best constant action, the generic searcher (`vlgym.blind`) and what the
spec names. The best by return and the best by success need not be one policy; each figure is of its own. A policy is
chosen where it is not judged, so that no luck of the choice is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..blind import Searcher
from ..blind_policies import BlindPolicy, load_players, make_constant
from ..env import VLEnv
from ..evaluation import Report
from ..policies import IdlePolicy, Policy, RandomPolicy
from ..spec import EnvSpec
from .garbage import GarbagePolicy
from .playing import seeds_of

MOST_CONSTANTS = 20
"""Constant actions that are tried, at most: the first that are legal at the start of half of the episodes."""

STARTS = 8
"""Episodes at whose start the legal actions are looked at."""

CONSTANT_TURNS, CHOOSING_TURNS = 400, 2000
"""Turns, about, for which each constant action, and then each policy, is played to choose among them."""

P = TypeVar("P", bound=Policy)

Play = Callable[[Policy, str, int], Report]
"""Plays so many episodes of a split with a policy."""


def measure_blind(spec: EnvSpec, make: Callable[[], VLEnv], play: Play, judge: Callable[[Policy], Any]) -> Any:
    """Play all blind policies on val (train, where there is none), and return a blind floor as registry.yaml records
    it: of the best, which is random play where that is as good.

    Args:
        judge: plays the chosen policies on the test split; returns `return`, `se`, `success` and `episodes`.
    """
    policies: list[Policy] = [
        RandomPolicy(), IdlePolicy(), GarbagePolicy(), *list_constants(spec, make, play),
        BlindPolicy(Searcher.name, Searcher), *load_players(spec),
    ]  # fmt: skip
    episodes = max(4, min(100, CHOOSING_TURNS // spec.max_turns))
    best = find_best(policies, [play(policy, choosing_split(spec), episodes) for policy in policies])
    earned = judge(best[0])
    won = earned if best[1] is best[0] else judge(best[1])
    return {**earned, "success": won["success"], "policy": best[0].name, "success_policy": best[1].name}


def list_constants(spec: EnvSpec, make: Callable[[], VLEnv], play: Play) -> list[BlindPolicy]:
    """Return the constant actions that earn most and that win most, one or two; none where no action is legal at the
    start of most episodes."""
    actions = find_constants(spec, make)
    if not actions:
        return []
    policies = [make_constant(action) for action in actions]
    episodes = max(4, min(60, CONSTANT_TURNS // spec.max_turns))
    best = find_best(policies, [play(policy, choosing_split(spec), episodes) for policy in policies])
    return list(dict.fromkeys(best))


def find_constants(spec: EnvSpec, make: Callable[[], VLEnv]) -> list[str]:
    """Return the actions that are legal at the start of at least half of some episodes, `MOST_CONSTANTS` at most."""
    env = make()
    legal: Counter[str] = Counter()
    try:
        for seed in seeds_of(spec.id, choosing_split(spec), STARTS):
            env.reset(seed=seed)
            legal.update(set(env.legal_actions()))
            order = env.legal_actions()
    finally:
        env.close()
    often = [action for action in legal if 2 * legal[action] >= STARTS]
    places = {action: place for place, action in enumerate(order)}
    return sorted(often, key=lambda action: (places.get(action, len(places)), action))[:MOST_CONSTANTS]


def find_best(policies: Sequence[P], reports: Sequence[Report]) -> tuple[P, P]:
    """Return the policy with the highest mean return and the one with the highest success; the first of equals."""
    pairs = list(zip(policies, reports, strict=True))
    return (
        max(pairs, key=lambda pair: pair[1].mean_return)[0],
        max(pairs, key=lambda pair: pair[1].success)[0],
    )


def choosing_split(spec: EnvSpec) -> str:
    """Return the split on which blind policies are chosen."""
    return next((split for split in ("val", "train") if split in spec.splits), spec.splits[0])

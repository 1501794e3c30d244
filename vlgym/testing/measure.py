"""Measure what registry.yaml records of an environment.

Hashes, fingerprint, and the returns of random policy, blind policies and oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from ..evaluation import Report, evaluate
from ..making import build
from ..policies import IdlePolicy, OraclePolicy, Policy, RandomPolicy
from ..recorded import hash_texts
from ..spec import EnvSpec
from .blind_floor import measure_blind
from .fingerprint import measure_behaviour
from .garbage import GarbagePolicy

SHORT_TURNS = 100
"""Episodes of at most so many turns are cheap: at random they took 0.001 to 0.2 s each on one core, and 0.7 s in a
browser; longer ones took 0.3 to 2.5 s. The oracle took up to 2.9 s."""

UNSEEN = {"image_size": (56, 56)}
"""How large the pictures of blind play are: small ones are drawn faster, and nobody sees them."""

MANY_EPISODES, FEW_EPISODES = 400, 100
"""Episodes of a floor or a ceiling: of an environment with at most `SHORT_TURNS` turns, and of the others. A spec's
`figure_episodes` goes first, where the turn limit says little about the time (football ends early) or where there is
not much to choose from (WebUI has few pages)."""


def measure_hashes(spec: EnvSpec, distribution: str) -> dict[str, Any]:
    """Return the parts of a registry entry that take no long play: spec, hashes, behaviour fingerprint, pictures."""
    behaviour = measure_behaviour(partial(build, spec), spec)
    env = build(spec)
    try:
        return {"distribution": distribution, "spec": spec, **hash_texts(env), **asdict(behaviour)}
    finally:
        env.close()


def measure_figures(spec: EnvSpec, on_episode: Callable[[object], None] | None = None) -> dict[str, Any]:
    """Return the parts of a registry entry that take long play: floor and ceiling (oracle).

    The floor is the best return of random, idle and garbage play, and their best success. `on_episode` is called after
    each of the episodes, `count_episodes` for each player.
    """
    ceiling = None if spec.oracle == "none" else play_figures(spec, OraclePolicy(fallback=True), on_episode)
    players = [play_figures(spec, policy, on_episode) for policy in (RandomPolicy(), IdlePolicy(), GarbagePolicy())]
    floor = {**max(players, key=lambda each: each["return"]), "success": max(each["success"] for each in players)}
    return {"floor": floor, "ceiling": ceiling}


def measure_blind_floor(spec: EnvSpec, floor: dict[str, Any]) -> dict[str, Any]:
    """Return the blind floor (see `blind_floor`): chosen on val, played on the test split; at least `floor`."""

    def play(policy: Policy, split: str, episodes: int) -> Report:
        return evaluate(spec.id, policy, split=split, episodes=episodes, num_envs=1, env_kwargs=UNSEEN)

    def judge(policy: Policy) -> dict[str, Any]:
        if isinstance(policy, (RandomPolicy, IdlePolicy, GarbagePolicy)):
            return dict(floor)
        return play_figures(spec, policy, arguments=UNSEEN)

    return dict(measure_blind(spec, partial(build, spec), play, judge))


def play_figures(
    spec: EnvSpec,
    policy: Policy,
    on_episode: Callable[[object], None] | None = None,
    arguments: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return mean return, its standard error, success and the number of episodes of a policy on the test split, in an
    environment with these arguments."""
    episodes = count_episodes(spec)
    report = evaluate(spec.id, policy, episodes=episodes, num_envs=1, env_kwargs=arguments, on_episode=on_episode)
    return {
        "return": round(report.mean_return, 4),
        "se": round(report.return_se, 4),
        "success": round(report.success, 4),
        "episodes": episodes,
    }


def count_episodes(spec: EnvSpec) -> int:
    """Return of how many episodes a floor or a ceiling is measured."""
    return spec.figure_episodes or (MANY_EPISODES if spec.max_turns <= SHORT_TURNS else FEW_EPISODES)

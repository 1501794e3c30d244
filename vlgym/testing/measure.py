"""Measure what registry.yaml records of an environment.

Hashes, fingerprint, and the returns of random policy and oracle.
"""

from __future__ import annotations

from typing import Any

from ..evaluation import evaluate
from ..making import build
from ..policies import OraclePolicy, Policy, RandomPolicy
from ..recorded import hash_texts
from ..spec import EnvSpec
from .fingerprint import fingerprint

TURN_BUDGET = 4000
"""Turns played for a floor or ceiling, about: `TURN_BUDGET / max_turns` episodes, at least 16 and at most 400."""


def measure_hashes(spec: EnvSpec, distribution: str) -> dict[str, Any]:
    """Return the parts of a registry entry that take no long play: spec, hashes and behaviour fingerprint."""
    env = build(spec)
    try:
        return {
            "distribution": distribution,
            "spec": spec,
            **hash_texts(env),
            "fingerprint": fingerprint(env, spec.id),
        }
    finally:
        env.close()


def measure_entry(spec: EnvSpec, distribution: str) -> dict[str, Any]:
    """Return a whole registry entry, floor and ceiling played on the test split."""
    return {**measure_hashes(spec, distribution), **measure_figures(spec)}


def measure_figures(spec: EnvSpec) -> dict[str, Any]:
    """Return the parts of a registry entry that take long play: floor (random) and ceiling (oracle)."""
    ceiling = None if spec.oracle == "none" else play_figures(spec, OraclePolicy(fallback=True))
    return {"floor": play_figures(spec, RandomPolicy()), "ceiling": ceiling}


def play_figures(spec: EnvSpec, policy: Policy) -> dict[str, Any]:
    """Return mean return, its standard error, success and the number of episodes of a policy on the test split."""
    episodes = spec.figure_episodes or count_episodes(spec)
    report = evaluate(spec.id, policy, episodes=episodes, num_envs=1)
    return {
        "return": round(report.mean_return, 4),
        "se": round(report.return_se, 4),
        "success": round(report.success, 4),
        "episodes": episodes,
    }


def count_episodes(spec: EnvSpec, budget: int = TURN_BUDGET, least: int = 16, most: int = 400) -> int:
    """Return how many episodes fit a budget of turns."""
    return max(least, min(most, budget // spec.max_turns))

"""Test a model's sight before an evaluation: play `can-it-see` once for each model and endpoint.

The records stay in the user's cache folder, so a model is asked once. `sight` judges them.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..files import find_cache
from ..play.controls import PICTURES
from ..play.policies import Policy
from ..play.trajectory import HEADER, read_trajectories
from ..sight.score import QUESTIONS, SUITE, SightReport, judge
from ..types import StepRecord
from .folder import count_finished, describe_evaluation
from .plan import Part, plan_suite
from .run import Watcher, run_evaluation

AGAIN = "The same command continues with this look; --no-probe leaves it out."


def plan_probe(episodes: int | None = None, **options: Any) -> list[Part]:
    """Return the parts of `can-it-see`: every probe with its own, grey and shuffled pictures."""
    questions = {kind: episodes or QUESTIONS[kind] for kind in PICTURES}
    parts, _ = plan_suite(SUITE, **options)
    return [replace(part, pictures=kind, episodes=count) for part in parts for kind, count in questions.items()]


def look_first(
    policy: Policy, *, num_envs: int | None = None, watcher: Watcher | None = None
) -> tuple[SightReport, Path]:
    """Play the missing episodes of `can-it-see`; return the verdict and their folder."""
    parts = plan_probe()
    run = describe_evaluation(parts, policy, builders={})
    session = policy.describe_session() if hasattr(policy, "describe_session") else {}
    words = json.dumps([run, session.get("base_url")], sort_keys=True)
    folder = find_cache("can-it-see") / hashlib.sha256(words.encode()).hexdigest()[:20]
    if count_finished(folder) < sum(part.total for part in parts):
        begun = (folder / HEADER).exists()
        run_evaluation(parts, policy, folder, num_envs=num_envs, resume=begun, watcher=watcher, again=AGAIN)
    return judge_folder(folder), folder


def judge_folder(folder: Path) -> SightReport:
    """Judge the records of a folder in which `can-it-see` was played."""
    played: dict[str, list[Sequence[StepRecord]]] = {}
    for episode in sorted(read_trajectories(folder, images=False), key=lambda each: each[0].episode):
        played.setdefault(episode[0].part, []).append(episode)
    return judge(dict(sorted(played.items())))

"""Checks of the results of `reset` and `step`: plain values, a fresh info in JSON, endings."""

from __future__ import annotations

import contextlib
import json
import math
from itertools import combinations
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded

from .playing import GARBAGE, choose_legal, play_episode
from .subject import Subject, require

LONG = 12  # turns over which results are compared with one another


def check_values(subject: Subject) -> str:
    """Rewards, flags, info and legal actions have valid values. Rewards and flags are Python's own
    numbers, info is JSON, and the legal actions are different, non-empty strings.

    Sees: numpy scalars, NaN, infinities, sets, arrays or objects in info, no or doubled legal
    actions, in about 200 turns. Cannot see: later turns, and other arguments.
    """
    steps = [step for episode in subject.sample() for step in episode]
    for step in steps:
        where = f"at turn {step.turn}"
        values: list[tuple[str, type, Any]] = [
            ("the reward", float, step.reward),
            ("info['score']", float, step.info.get("score", 0.0)),
            ("terminated", bool, step.terminated),
            ("truncated", bool, step.truncated),
            ("info['success']", bool, step.info.get("success")),
            ("info['invalid_action']", bool, step.info.get("invalid_action")),
        ]
        for name, kind, value in values:
            wrong = f"{name} {where} is {type(value).__name__} {value!r:.40}"
            require(type(value) is kind, f"{wrong}, not a {kind.__name__}")
            require(math.isfinite(value), wrong)
        try:
            json.dumps(step.info, allow_nan=False)
        except (TypeError, ValueError) as error:
            require(False, f"info {where} is not JSON: {error}")

        # An episode that goes on offers actions.
        if not step.ended:
            require(step.legal, f"there is no legal action {where}")
            require(len(set(step.legal)) == len(step.legal), f"a legal action {where} is listed twice")
            for action in step.legal:
                text = isinstance(action, str) and action.strip()
                require(text, f"the legal action {action!r} {where} is no text")
    return f"{len(steps)} results hold plain numbers, and an info that is JSON"


def check_endings(subject: Subject) -> str:
    """An episode ends as terminated or as truncated, not both, and stays ended. It is truncated
    before `max_turns` only where the spec says `truncates_early`.

    Sees: both flags at once, a truncation of legal play before its time, a step after the end; a
    `close` that leaves out the base class's. Cannot see: an end that comes too early as
    `terminated`.
    """
    env, seeds = subject.make(), subject.seeds(3, first=40)
    limit = env.max_turns
    played = [play_episode(env, seed, choose_legal(index), min(limit, 60)) for index, seed in enumerate(seeds)]
    env.reset(seed=seeds[0])
    env.close()
    with contextlib.suppress(ResetNeeded):
        env.step(GARBAGE)
        require(False, "a closed environment takes a step: close() must call super().close()")

    # The ends of these episodes, and of those that policies played.
    ends = 0
    for last in (episode[-1] for episode in (*subject.sample(), *played)):
        both = last.terminated and last.truncated
        require(not both, f"turn {last.turn}: terminated and truncated are both set")
        ends += last.ended
        at = last.info["vlgym"]["turn"]
        early = last.truncated and at < limit and not subject.spec.truncates_early
        require(not early, f"an episode was truncated at turn {at} of {limit}")
    for record in subject.records():
        both = record.terminated and record.truncated
        require(not both, f"turn {record.turn + 1}: terminated and truncated are both set")
    return f"{ends} endings, each with one flag; legal play is not truncated before its limit"


def check_fresh(subject: Subject) -> str:
    """Observations and infos of different calls share no memory. They do not change later.

    Sees: an array, list, dict or set that two of the first 12 results share, and one that changes
    afterwards. Cannot see: later turns.
    """
    env, choose = subject.make(), choose_legal(2, garbage_every=5)
    observation, info = env.reset(seed=2)
    results = [(observation["image"], info)]
    copies = [(observation["image"].copy(), json.dumps(info, default=str))]
    for turn in range(LONG):
        observation, _, terminated, truncated, info = env.step(choose(env, turn))
        results.append((observation["image"], info))
        copies.append((observation["image"].copy(), json.dumps(info, default=str)))
        if terminated or truncated:
            break

    # No two results share anything.
    for (one, (image, info)), (two, (later, later_info)) in combinations(enumerate(results), 2):
        turns = f"of turns {one} and {two} share"
        require(not np.shares_memory(image, later), f"the images {turns} memory")
        mutable = _list_mutable(info)
        names = {mutable[key] for key in mutable.keys() & _list_mutable(later_info).keys()}
        require(not names, f"the infos {turns} a {', a '.join(sorted(names))}")

    # Each is as it was, and none is the environment's own.
    for number, ((image, info), (first, text)) in enumerate(zip(results, copies, strict=True)):
        after = f"of turn {number} changed afterwards"
        require(np.array_equal(image, first), f"the image {after}")
        require(json.dumps(info, default=str) == text, f"the info {after}")
    results[-1][0][:] = 0
    own = np.array_equal(copies[-1][0], env.image())
    require(own, "writing into an image changed the environment's own")
    return f"images and infos of {len(results)} calls are fresh and stay as they were"


def _list_mutable(value: Any) -> dict[int, str]:
    """Return the `id` of every dict, list, set and array within `value`, with its type."""
    containers: dict[int, str] = {}
    if isinstance(value, (dict, list, set, np.ndarray)):
        containers[id(value)] = type(value).__name__
    if isinstance(value, dict):
        for item in value.values():
            containers.update(_list_mutable(item))
    elif isinstance(value, (list, tuple)):
        for item in value:
            containers.update(_list_mutable(item))
    return containers

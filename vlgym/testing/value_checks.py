"""Checks of what `reset` and `step` return: plain values, an info that is JSON and shared with nobody, and endings.

One function for each property: it returns its evidence in a line, or raises `CheckFailure`.
"""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded

from .playing import GARBAGE, choose_legal, play_episode, seeds_of
from .subject import Subject, require

LONG = 12
"""Turns over which results are compared with one another."""


def check_values(subject: Subject) -> str:
    """Rewards, flags, info and legal actions have valid values. Rewards and flags are Python's own numbers, info is
    JSON, and the legal actions are different, non-empty strings.

    Sees: numpy scalars, NaN, infinities, sets, arrays or objects in info, no or doubled legal actions, in about 200
    turns of play. Cannot see: what occurs later, or under other arguments.
    """
    steps = [step for episode in subject.sample() for step in episode]
    for step in steps:
        where = f"at turn {step.turn}"
        require(type(step.reward) is float, f"the reward {where} is {_describe(step.reward)}, not a float")
        require(math.isfinite(step.reward), f"the reward {where} is {step.reward}")
        for name, flag in (
            ("terminated", step.terminated),
            ("truncated", step.truncated),
            ("info['success']", step.info.get("success")),
            ("info['invalid_action']", step.info.get("invalid_action")),
        ):
            require(type(flag) is bool, f"{name} {where} is {_describe(flag)}, not a bool")
        score = step.info.get("score", 0.0)
        require(type(score) is float and math.isfinite(score), f"info['score'] {where} is {_describe(score)}")
        try:
            json.dumps(step.info, allow_nan=False)
        except (TypeError, ValueError) as error:
            require(False, f"info {where} is not JSON: {error}")
        if not step.ended:
            require(step.legal, f"there is no legal action {where}")
            require(len(set(step.legal)) == len(step.legal), f"a legal action {where} is listed twice")
            odd = [action for action in step.legal if not isinstance(action, str) or not action.strip()]
            require(not odd, f"the legal action {odd[:1]} {where} is no text")
    return f"{len(steps)} results hold plain numbers, and an info that is JSON"


def check_endings(subject: Subject) -> str:
    """An episode ends as terminated or as truncated, not both, and stays ended.

    It is truncated before `max_turns` only where the spec says `truncates_early`.

    Sees: both flags at once, a truncation of legal play before its time, a step after the end, in the sample's
    episodes; a `close` that leaves out the base class's. Cannot see: an end that comes too early as `terminated`, which
    is a rule of the game.
    """
    env = subject.make()
    turns = min(env.max_turns, 60)
    seeds = seeds_of(subject.spec.id, "train", 3, first=40)
    played = [play_episode(env, seed, choose_legal(index), turns) for index, seed in enumerate(seeds)]
    env.reset(seed=seeds[0])
    env.close()
    with contextlib.suppress(ResetNeeded):
        env.step(GARBAGE)
        require(False, "a closed environment takes a step: close() must call super().close()")
    ends = 0
    for last in (episode[-1] for episode in (*subject.sample(), *played)):
        require(not (last.terminated and last.truncated), f"turn {last.turn}: terminated and truncated are both set")
        ends += last.ended
        at = last.info["vlgym"]["turn"]
        early = last.truncated and at < env.max_turns and not subject.spec.truncates_early
        require(not early, f"an episode was truncated at turn {at} of {env.max_turns}")
    for record in subject.records():
        require(not (record.terminated and record.truncated), f"turn {record.turn + 1}: both flags are set")
    return f"{ends} endings, each with one flag; legal play is not truncated before its limit"


def check_fresh(subject: Subject) -> str:
    """Observations and infos of different calls share no memory. What is given away does not change later.

    Sees: an array, list, dict or set that two of the first 12 results share, and one that changes afterwards. Cannot
    see: later turns.
    """
    env = subject.make()
    choose = choose_legal(2)
    results = [env.reset(seed=2)]
    copies = [_copy(*results[-1])]
    for turn in range(LONG):
        observation, _, terminated, truncated, info = env.step(GARBAGE if turn % 5 == 4 else choose(env, turn))
        results.append((observation, info))
        copies.append(_copy(observation, info))
        if terminated or truncated:
            break
    for number, (observation, info) in enumerate(results):
        for other, (later, later_info) in enumerate(results[number + 1 :], number + 1):
            image, next_image = observation["image"], later["image"]
            require(not np.shares_memory(image, next_image), f"the images of turns {number} and {other} share memory")
            shared = list_mutable(info).keys() & list_mutable(later_info).keys()
            names = ", a ".join(sorted({list_mutable(info)[key] for key in shared}))
            require(not shared, f"the infos of turns {number} and {other} share a {names}")
    for number, (image, info_text) in enumerate(copies):
        observation, info = results[number]
        require(np.array_equal(observation["image"], image), f"the image of turn {number} changed afterwards")
        require(json.dumps(info, default=str) == info_text, f"the info of turn {number} changed afterwards")
    results[-1][0]["image"][:] = 0
    require(np.array_equal(copies[-1][0], env.image()), "writing into an image changed the environment's own")
    env.close()
    return f"images and infos of {len(results)} calls are fresh and stay as they were"


def _copy(observation: dict[str, Any], info: dict[str, Any]) -> tuple[Any, str]:
    return observation["image"].copy(), json.dumps(info, default=str)


def list_mutable(value: Any) -> dict[int, str]:
    """Return the `id` of every dict, list, set and array within `value`, with its type."""
    containers: dict[int, str] = {}
    if isinstance(value, (dict, list, set, np.ndarray)):
        containers[id(value)] = type(value).__name__
    if isinstance(value, dict):
        for item in value.values():
            containers.update(list_mutable(item))
    elif isinstance(value, (list, tuple)):
        for item in value:
            containers.update(list_mutable(item))
    return containers


def _describe(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"

"""Fingerprint of an environment's behaviour: a hash and some small pictures.

Fixed seeds and fixed replies go in; text, reward, flags, info and images come out. Numbers are
rounded to 6 decimals, because the last bits of sines differ between machines. Images are compared
by `pictures`, because renderers and fonts differ too. `list_episodes` has the episodes.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from ..env import VLEnv
from ..env.pictures import MOST_PICTURES, pack_pictures, shrink
from ..env.probes import EDIT, INTO, LEGAL, ORACLE, RAW, TO_THE_END, Probe
from ..env.seeding import episode_seed
from ..env.spec import EnvSpec
from ..types import Image
from .playing import GARBAGE, Deadline

RANDOM_TURNS = 40  # most turns of a random episode
ORACLE_TURNS = {"test": 300, "val": 100, "train": 100}  # most turns of the oracle's episode on each split
UNHASHED = ("span", "form", "point")  # fields of `info["vlgym"]` that follow from reply and action
Make = Callable[..., VLEnv]  # builds the environment, with constructor arguments over the usual ones


@dataclass(frozen=True)
class Behaviour:
    """Measured behaviour of an environment.

    Attributes:
        fingerprints: 16 hexadecimal digits after each episode, equal on every machine.
        pictures: small pictures (see `pictures.pack_pictures`), to be compared with tolerance.
    """

    fingerprints: tuple[str, ...]
    pictures: str

    def to_entry(self) -> dict[str, str]:
        """Return the parts of a registry entry."""
        return {"fingerprint": self.fingerprints[-1], "pictures": self.pictures}


def measure_behaviour(make: Make, spec: EnvSpec, *, variants: bool = True, seconds: float = math.inf) -> Behaviour:
    """Play the episodes and return fingerprint and pictures.

    Args:
        variants: play the spec's probes with arguments, too; these may not go with other arguments.
        seconds: time after which no other episode is begun.
    """
    digest, deadline = hashlib.sha256(), Deadline(seconds)
    reached: list[str] = []
    pictures: list[Any] = []
    with closing(make()) as usual:
        for probe, turns in list_episodes(spec):
            if probe in spec.probes and probe.kwargs and not variants:
                continue

            # The usual environment plays all episodes without arguments, one after the other.
            images: list[Image] = []
            with closing(make(**probe.kwargs)) if probe.kwargs else nullcontext(usual) as env:
                lines = transcript(env, spec.id, probe, turns, images)
            digest.update("".join(lines).encode())
            pictures += [shrink(image) for image in (images[0], images[-1])]
            reached.append(digest.hexdigest()[:16])
            if deadline.over:
                break
    return Behaviour(tuple(reached), pack_pictures(pictures[:MOST_PICTURES]))


def list_episodes(spec: EnvSpec) -> Iterator[tuple[Probe, int]]:
    """Yield the episodes of every environment, then its probes; each with its limit of turns."""
    # Random play rarely sees what success pays, which the oracle does.
    for number, split in enumerate(spec.splits):
        for index in range(2 if spec.max_turns <= 50 else 1):
            random = Probe("random", ("@random",) * RANDOM_TURNS, split=split, index=index)
            yield random, RANDOM_TURNS
        if spec.oracle != "none":
            yield Probe("oracle", (TO_THE_END,), split=split, index=2 + number), ORACLE_TURNS[split]

    # Replies of every kind in every style, and the other ways with invalid ones.
    yield Probe("replies", ("@kinds",)), 12
    for style in spec.reply_styles[1:]:
        yield Probe(f"replies in {style}", ("@kinds",), kwargs={"parser": style}), 12
    for policy in ("random", "terminate"):
        yield Probe(f"invalid: {policy}", (RAW + GARBAGE,) * 4, kwargs={"invalid_action": policy}, index=3), 4

    # Plans, and the rules that none of these reaches.
    if "global" in spec.planners and "online" in spec.planners:
        for reply in (TO_THE_END, f"{LEGAL}0"):
            yield Probe("global", (reply,), kwargs={"planner": "global"}, index=4), 2
    for probe in spec.probes:
        yield probe, ORACLE_TURNS["test"]


def transcript(
    env: VLEnv, env_id: str, probe: Probe, turns: int = RANDOM_TURNS, images: list[Image] | None = None
) -> list[str]:
    """Play one episode; return a JSON line for each call, and append the pictures to `images`."""
    images = [] if images is None else images
    seed = episode_seed(env_id, probe.split, probe.index)
    observation, info = env.reset(seed=seed, options=dict(probe.options) or None)
    images.append(observation["image"])
    lines = [_line(observation, 0.0, False, False, info)]
    replies = _write_replies(env, probe, np.random.default_rng(probe.index))
    for text in islice(replies, turns):
        observation, reward, terminated, truncated, info = env.step(text)
        images.append(observation["image"])
        lines.append(_line(observation, reward, terminated, truncated, info))
        if terminated or truncated:
            break
    return lines


def _write_replies(env: VLEnv, probe: Probe, rng: np.random.Generator) -> Iterator[str]:
    """Yield the replies of a probe, each written when its turn has come."""
    for number, reply in enumerate(probe.replies):
        if reply == "@random":
            yield scripted_reply(env, rng, number)
        elif reply == "@kinds":
            yield from _write_kinds(env)
        elif reply == ORACLE:
            yield env.solve() or GARBAGE
        elif reply == TO_THE_END:
            while True:
                yield env.solve() or GARBAGE
        elif reply.startswith(EDIT):
            old, _, new = reply[len(EDIT) :].partition(INTO)
            yield (env.solve() or GARBAGE).replace(old, new)
        elif reply.startswith(LEGAL):
            legal = env.legal_actions()
            yield env.parser.format([legal[int(reply[len(LEGAL) :]) % len(legal)]]) if legal else GARBAGE
        elif reply.startswith(RAW):
            yield reply[len(RAW) :]
        else:
            yield env.parser.format([reply])


def _write_kinds(env: VLEnv) -> Iterator[str]:
    """Yield replies of every kind that models write."""
    write = env.parser.format
    for number in range(9):
        legal = env.legal_actions() or [""]
        action, other = (legal[(7 * number + place) % len(legal)] for place in (1, 2))
        yield (
            write([action.upper() if "\n" not in action else action]),  # in another case
            write([f"  {action.replace(' ', '   ')} "]),  # with more white space
            write([action], f"not {other}; I take this"),  # after thoughts
            f"{write([other])} {write([action])}",  # two actions
            write([action])[:-3],  # cut off
            action,  # without the format
            write(["fly to the moon"]),  # illegal
            write([f"{action}s"]),  # nearly legal
            "",
        )[number]


def scripted_reply(env: VLEnv, replies: np.random.Generator, turn: int) -> str:
    """Return an unreadable reply at every fifth turn, else a legal action drawn from `replies`."""
    legal = env.legal_actions()
    choice = legal[int(replies.integers(len(legal)))] if legal else ""
    return GARBAGE if turn % 5 == 4 else env.parser.format([choice])


def _line(observation: Any, reward: float, terminated: bool, truncated: bool, info: Any) -> str:
    details = {name: value for name, value in info["vlgym"].items() if name not in UNHASHED}
    facts = json.dumps({**info, "vlgym": details}, default=lambda array: array.tolist())
    rounded = json.loads(facts, parse_float=lambda digits: round(float(digits), 6) + 0.0)
    return json.dumps([observation["text"], round(reward, 6), terminated, truncated, rounded], sort_keys=True)

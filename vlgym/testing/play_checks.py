"""Checks that play: the same seed gives the same episode, the oracle wins, random does not, garbage never pays,
episodes end.

One function for each property: it returns its evidence in a line, or raises `CheckFailure`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np

from ..policies import OraclePolicy, RandomPolicy
from ..seeding import episode_seed
from .fingerprint import GARBAGE, scripted_reply, transcript
from .garbage import write_garbage
from .subject import CheckFailure, Subject, require


def check_determinism(subject: Subject) -> str:
    """The same seed gives the same episode, pixels included, in a fresh instance and after another history."""
    first, second = subject.make(), subject.make()
    transcript(second, subject.spec.id, 7, turns=5)
    for index in range(2):
        a_images: list[Any] = []
        b_images: list[Any] = []
        a = transcript(first, subject.spec.id, index, images=a_images)
        b = transcript(second, subject.spec.id, index, images=b_images)
        require(a == b, f"seed {index}: texts, rewards or info differ at turn {_first_difference(a, b)}")
        same = all(np.array_equal(x, y) for x, y in zip(a_images, b_images, strict=True))
        require(same, f"seed {index}: images differ")
    starts = {transcript(first, subject.spec.id, index, turns=0)[0] for index in range(12)}
    pictures = len(
        {first.reset(seed=episode_seed(subject.spec.id, "train", i))[0]["image"].tobytes() for i in range(12)}
    )
    require(len(starts) > 1 or pictures > 1, "12 seeds all begin in the same state: the seed has no effect")
    first.close()
    second.close()
    return f"2 seeds replayed identically; 12 seeds gave {len(starts)} texts and {pictures} images"


def check_processes(subject: Subject) -> str:
    """Another process with another hash seed computes the same behaviour fingerprint."""
    here = subject.fingerprint()
    code = (
        "import json, sys\nfrom vlgym.making import build\nfrom vlgym.spec import EnvSpec\n"
        "from vlgym.testing.fingerprint import fingerprint\n"
        "spec, kwargs = json.load(sys.stdin)\nspec = EnvSpec.from_dict(spec)\n"
        "sys.stderr.write('FINGERPRINT ' + fingerprint(build(spec, **kwargs), spec.id) + chr(10))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps([subject.spec.to_dict(), subject.kwargs]), text=True,
        capture_output=True, timeout=300, env={**os.environ, "PYTHONHASHSEED": "123"},
    )  # fmt: skip
    found = [line.split()[1] for line in done.stderr.splitlines() if line.startswith("FINGERPRINT ")]
    require(bool(found), f"the other process failed: {done.stderr.strip()[-300:]}")
    require(found[0] == here, f"fingerprint {here} here, {found[0]} in another process")
    return f"fingerprint {here} in two processes"


def check_state(subject: Subject) -> str:
    """A state saved in mid-episode, passed through JSON and restored in a new instance, goes on identically."""
    env, other = subject.make(), subject.make()
    replies = np.random.default_rng(3)
    observation, _ = env.reset(seed=episode_seed(subject.spec.id, "train", 3))
    for turn in range(4):
        _, _, terminated, truncated, _ = env.step(scripted_reply(env, replies, turn))
        if terminated or truncated:
            env.reset(seed=episode_seed(subject.spec.id, "train", 4 + turn))
    state = json.loads(json.dumps(env.get_state()))
    other.reset(seed=1)
    restored, _ = other.set_state(state)
    require(np.array_equal(restored["image"], env.image()), "the image differs after set_state")
    played = 0
    for turn in range(12):
        text = scripted_reply(env, replies, turn)
        a, b = env.step(text), other.step(text)
        same = a[0]["text"] == b[0]["text"] and np.array_equal(a[0]["image"], b[0]["image"])
        require(
            same and a[1:4] == b[1:4] and a[4]["success"] == b[4]["success"], f"turn {turn} after the restore differs"
        )
        played += 1
        if a[2] or a[3]:
            break
    del observation
    env.close()
    other.close()
    return f"state of {len(json.dumps(state))} bytes restored; {played} further turns identical"


def check_oracle(subject: Subject) -> str:
    """The oracle wins its stated share of the seeds, or the spec says that there is none."""
    if subject.spec.oracle == "none":
        env = subject.make()
        env.reset(seed=0)
        require(env.solve() is None, "the spec says oracle='none', but solve() answers")
        env.close()
        return "the spec states that there is no oracle"
    report = subject.play(OraclePolicy(fallback=True))
    require(
        report.success >= subject.spec.oracle_success - 1e-9,
        f"oracle succeeded in {report.success:.3f} of {report.episodes} episodes, "
        f"the spec promises {subject.spec.oracle_success}",
    )
    return (
        f"oracle success {report.success:.3f} (promised {subject.spec.oracle_success}), "
        f"return {report.mean_return:.3f}, {report.episodes} episodes"
    )


def check_floor(subject: Subject) -> str:
    """The random policy stays under its bound and under the oracle's return."""
    report = subject.play(RandomPolicy())
    require(
        report.success < subject.spec.random_success_below,
        f"random success {report.success:.3f} is not below {subject.spec.random_success_below}",
    )
    if subject.spec.oracle != "none":
        best = subject.play(OraclePolicy(fallback=True)).mean_return
        require(
            report.mean_return < best, f"random return {report.mean_return:.3f} is not below the oracle's {best:.3f}"
        )
    return f"random success {report.success:.3f}, return {report.mean_return:.3f}, {report.episodes} episodes"


def check_rewards(subject: Subject) -> str:
    """Every observed reward lies in the stated range, and an episode's end is reached."""
    subject.play(RandomPolicy())
    low, high = subject.spec.reward_range
    rewards = [record.reward for record in subject.records()]
    require(
        min(rewards) >= low - 1e-9 and max(rewards) <= high + 1e-9,
        f"rewards {min(rewards)}..{max(rewards)} leave [{low}, {high}]",
    )
    longest = max(record.turn for record in subject.records()) + 1
    require(
        longest <= subject.spec.max_turns, f"an episode took {longest} turns, the spec says {subject.spec.max_turns}"
    )
    return f"{len(rewards)} rewards in [{min(rewards):.3f}, {max(rewards):.3f}]; longest episode {longest} turns"


def check_garbage(subject: Subject) -> str:
    """Unreadable replies never raise, never pay, and never end in success."""
    env = subject.make()
    random_source = np.random.default_rng(11)
    invalid = 0
    env.reset(seed=episode_seed(subject.spec.id, "val", 0))
    for number in range(subject.garbage):
        text = write_garbage(random_source, env.legal_actions())
        try:
            _, reward, terminated, truncated, info = env.step(text)
        except Exception as error:
            raise CheckFailure(f"reply {text!r:.120} raised {type(error).__name__}: {error}") from error
        if info["invalid_action"]:
            invalid += 1
            require(reward <= 0, f"reply {text!r:.120} was invalid and paid {reward}")
        if terminated or truncated:
            env.reset(seed=episode_seed(subject.spec.id, "val", number + 1))
    env.close()
    require(invalid > 0.5 * subject.garbage, f"only {invalid} of {subject.garbage} garbage replies counted as invalid")
    return f"{subject.garbage} garbage replies, {invalid} counted invalid, none raised or paid"


def check_turn_limit(subject: Subject) -> str:
    """An episode of unreadable replies is truncated at the turn limit, not terminated; where the environment's
    `invalid_action` is `terminate`, the first one terminates it."""
    limit = min(subject.spec.max_turns, 25)
    env = subject.make(max_turns=limit)
    at_once = env.invalid_action == "terminate"
    env.reset(seed=5)
    for turn in range(1 if at_once else limit):
        _, _, terminated, truncated, info = env.step(GARBAGE)
        require(not info["success"], "unreadable replies ended in success")
        if at_once:
            require(terminated, "invalid_action is 'terminate', but an unreadable reply did not terminate the episode")
            continue
        require(not terminated, f"turn {turn} of unreadable replies terminated the episode")
        require(truncated == (turn == limit - 1), f"truncated={truncated} at turn {turn + 1} of {limit}")
    try:
        env.step(GARBAGE)
    except gymnasium.error.ResetNeeded:
        env.close()
        ended = "terminated by the first unreadable reply" if at_once else f"truncated after exactly {limit} turns"
        return f"{ended}; stepping on raises ResetNeeded"
    raise CheckFailure("stepping after the end did not raise ResetNeeded")


def _first_difference(a: list[str], b: list[str]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

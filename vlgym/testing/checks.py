"""The properties that every environment must have, one function each: it returns its evidence in a line, or raises `CheckFailure`.

`vlgym check ID` prints them as a certificate and `EnvConformance` runs them under pytest; both use this list and nothing else.
"""

from __future__ import annotations

import inspect
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

from ..env import VLEnv
from ..evaluation import Report, summarize
from ..making import build
from ..parsers import get_parser
from ..policies import OraclePolicy, Policy, RandomPolicy
from ..rollout import Runner, run_episodes
from ..seeding import SPLITS, episode_seed
from ..spaces import match_legal
from ..spec import EnvSpec
from ..types import StepRecord
from .fingerprint import GARBAGE, fingerprint, scripted_reply, transcript
from .garbage import write_garbage
from .measure import count_episodes

CARD_HEADINGS = ("Goal", "Observation", "Actions", "Reward", "Endings", "References")


class CheckFailure(AssertionError):
    """A property does not hold; the message is the evidence."""


@dataclass(frozen=True)
class CheckResult:
    """One line of a certificate: name of the property, whether it holds, and the evidence."""

    name: str
    passed: bool
    evidence: str


@dataclass
class Subject:
    """The environment under test.

    Attributes:
        spec: its card.
        kwargs: arguments for the constructor.
        garbage: unreadable replies to try.
    """

    spec: EnvSpec
    kwargs: dict[str, Any] = field(default_factory=dict)
    garbage: int = 300
    _episodes: dict[str, list[list[StepRecord]]] = field(default_factory=dict)

    def make(self, **kwargs: Any) -> VLEnv:
        """Build a fresh one."""
        return build(self.spec, **{**self.kwargs, **kwargs})

    def play(self, policy: Policy) -> Report:
        """Play the policy on the val split (once; later calls reuse it)."""
        if policy.name not in self._episodes:
            runner = Runner([self.make()], split="val", episodes=count_episodes(self.spec, budget=1500, least=5, most=60))
            try:
                self._episodes[policy.name] = list(run_episodes(runner, policy))
            finally:
                runner.close()
        return summarize(self.spec.id, policy.name, "val", self._episodes[policy.name])

    def records(self) -> list[StepRecord]:
        """All turns played so far."""
        return [record for episodes in self._episodes.values() for episode in episodes for record in episode]


def check_card(subject: Subject) -> str:
    """The class docstring is a complete card, and the spec's reply styles exist."""
    env = subject.make()
    doc = inspect.getdoc(type(env)) or ""
    missing = [heading for heading in CARD_HEADINGS if f"{heading}:" not in doc]
    _require(not missing, f"the class docstring lacks {', '.join(missing)}")
    _require(env.prompt.version == subject.spec.prompt_version, f"prompt version {env.prompt.version} is not the spec's {subject.spec.prompt_version}")
    for style in subject.spec.reply_styles:
        get_parser(style)
    env.close()
    return f"card has {', '.join(CARD_HEADINGS)}; parsers {', '.join(subject.spec.reply_styles)} load"


def check_gymnasium(subject: Subject) -> str:
    """`gymnasium.utils.env_checker.check_env` passes."""
    env = subject.make(render_mode="rgb_array")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_env(env, skip_render_check=True)
    except Exception as error:
        raise CheckFailure(f"check_env: {type(error).__name__}: {error}") from error
    finally:
        env.close()
    return f"check_env passed with {len(caught)} warning(s)"


def check_determinism(subject: Subject) -> str:
    """The same seed gives the same episode, pixels included, in a fresh instance and after another history."""
    first, second = subject.make(), subject.make()
    transcript(second, subject.spec.id, 7, turns=5)
    for index in range(2):
        a_images: list[Any] = []
        b_images: list[Any] = []
        a = transcript(first, subject.spec.id, index, images=a_images)
        b = transcript(second, subject.spec.id, index, images=b_images)
        _require(a == b, f"seed {index}: texts, rewards or info differ at turn {_first_difference(a, b)}")
        same = all(np.array_equal(x, y) for x, y in zip(a_images, b_images, strict=True))
        _require(same, f"seed {index}: images differ")
    starts = {transcript(first, subject.spec.id, index, turns=0)[0] for index in range(12)}
    pictures = len({first.reset(seed=episode_seed(subject.spec.id, "train", i))[0]["image"].tobytes() for i in range(12)})
    _require(len(starts) > 1 or pictures > 1, "12 seeds all begin in the same state: the seed has no effect")
    first.close()
    second.close()
    return f"2 seeds replayed identically; 12 seeds gave {len(starts)} texts and {pictures} images"


def check_processes(subject: Subject) -> str:
    """Another process with another hash seed computes the same behaviour fingerprint."""
    env = subject.make()
    here = fingerprint(env, subject.spec.id)
    env.close()
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
    _require(bool(found), f"the other process failed: {done.stderr.strip()[-300:]}")
    _require(found[0] == here, f"fingerprint {here} here, {found[0]} in another process")
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
    _require(np.array_equal(restored["image"], env.image()), "the image differs after set_state")
    played = 0
    for turn in range(12):
        text = scripted_reply(env, replies, turn)
        a, b = env.step(text), other.step(text)
        same = a[0]["text"] == b[0]["text"] and np.array_equal(a[0]["image"], b[0]["image"])
        _require(same and a[1:4] == b[1:4] and a[4]["success"] == b[4]["success"], f"turn {turn} after the restore differs")
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
        _require(env.solve() is None, "the spec says oracle='none', but solve() answers")
        env.close()
        return "the spec states that there is no oracle"
    report = subject.play(OraclePolicy(fallback=True))
    _require(
        report.success >= subject.spec.oracle_success - 1e-9,
        f"oracle succeeded in {report.success:.3f} of {report.episodes} episodes, the spec promises {subject.spec.oracle_success}",
    )
    return f"oracle success {report.success:.3f} (promised {subject.spec.oracle_success}), return {report.mean_return:.3f}, {report.episodes} episodes"


def check_floor(subject: Subject) -> str:
    """The random policy stays under its bound and under the oracle's return."""
    report = subject.play(RandomPolicy())
    _require(
        report.success < subject.spec.random_success_below,
        f"random success {report.success:.3f} is not below {subject.spec.random_success_below}",
    )
    if subject.spec.oracle != "none":
        best = subject.play(OraclePolicy(fallback=True)).mean_return
        _require(report.mean_return < best, f"random return {report.mean_return:.3f} is not below the oracle's {best:.3f}")
    return f"random success {report.success:.3f}, return {report.mean_return:.3f}, {report.episodes} episodes"


def check_rewards(subject: Subject) -> str:
    """Every observed reward lies in the stated range, and an episode's end is reached."""
    subject.play(RandomPolicy())
    low, high = subject.spec.reward_range
    rewards = [record.reward for record in subject.records()]
    _require(min(rewards) >= low - 1e-9 and max(rewards) <= high + 1e-9, f"rewards {min(rewards)}..{max(rewards)} leave [{low}, {high}]")
    longest = max(record.turn for record in subject.records()) + 1
    _require(longest <= subject.spec.max_turns, f"an episode took {longest} turns, the spec says {subject.spec.max_turns}")
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
            _require(reward <= 0, f"reply {text!r:.120} was invalid and paid {reward}")
        if terminated or truncated:
            env.reset(seed=episode_seed(subject.spec.id, "val", number + 1))
    env.close()
    _require(invalid > 0.5 * subject.garbage, f"only {invalid} of {subject.garbage} garbage replies counted as invalid")
    return f"{subject.garbage} garbage replies, {invalid} counted invalid, none raised or paid"


def check_turn_limit(subject: Subject) -> str:
    """An episode of unreadable replies is truncated at the turn limit, not terminated."""
    limit = min(subject.spec.max_turns, 25)
    env = subject.make(max_turns=limit)
    env.reset(seed=5)
    for turn in range(limit):
        _, _, terminated, truncated, info = env.step(GARBAGE)
        _require(not terminated, f"turn {turn} of unreadable replies terminated the episode")
        _require(truncated == (turn == limit - 1), f"truncated={truncated} at turn {turn + 1} of {limit}")
        _require(not info["success"], "unreadable replies ended in success")
    try:
        env.step(GARBAGE)
    except gymnasium.error.ResetNeeded:
        env.close()
        return f"truncated after exactly {limit} turns; stepping on raises ResetNeeded"
    raise CheckFailure("stepping after the end did not raise ResetNeeded")


def check_parsers(subject: Subject) -> str:
    """Every legal action that occurs in play round-trips through every reply style, with and without thoughts."""
    env = subject.make()
    seen: set[str] = set()
    replies = np.random.default_rng(1)
    for index in range(3):
        env.reset(seed=episode_seed(subject.spec.id, "train", index))
        for turn in range(30):
            seen.update(env.legal_actions())
            _, _, terminated, truncated, _ = env.step(scripted_reply(env, replies, turn))
            if terminated or truncated:
                break
    env.close()
    for style in subject.spec.reply_styles:
        parser = get_parser(style)
        for action in seen:
            for thoughts in ("", 'I see <a "wall"> {here}; so:'):
                read = parser.parse(parser.format([action], thoughts), sorted(seen))
                matched = match_legal(read.actions[0], sorted(seen)) if len(read.actions) == 1 else None
                _require(matched == action, f"{style}: {action!r} came back as {read}")
    return f"{len(seen)} actions round-trip through {', '.join(subject.spec.reply_styles)}"


def check_prompt(subject: Subject) -> str:
    """The text states every legal action and the reply format, and the observation lies in its space."""
    checked = 0
    for style in subject.spec.reply_styles:
        env = subject.make(parser=style)
        replies = np.random.default_rng(2)
        observation, info = env.reset(seed=episode_seed(subject.spec.id, "train", 1))
        for turn in range(10):
            _require(env.observation_space.contains(observation), "an observation lies outside the observation space")
            text = observation["text"]
            absent = [action for action in env.legal_actions() if action not in text]
            _require(not absent, f"the text does not state the legal action(s) {absent[:3]}")
            _require(env.parser.describe() in text, f"the text does not state the reply format of {style}")
            _require(info["vlgym"]["instructions"] in text and info["vlgym"]["turn_text"] in text, "the text is not instructions + turn text")
            checked += 1
            observation, _, terminated, truncated, info = env.step(scripted_reply(env, replies, turn))
            if terminated or truncated:
                break
        env.close()
    return f"{checked} texts state all legal actions and the reply format"


def check_fresh(subject: Subject) -> str:
    """Observations and infos of different calls share no memory."""
    env = subject.make()
    before, info_before = env.reset(seed=2)
    kept = before["image"].copy()
    after, _, _, _, info_after = env.step(env.action_space.sample())
    _require(not np.shares_memory(before["image"], after["image"]), "two images share memory")
    _require(np.array_equal(before["image"], kept), "an earlier image changed when the environment went on")
    before["image"][:] = 0
    _require(np.array_equal(after["image"], env.image()), "writing into an image changed the environment's own")
    _require(info_before["vlgym"] is not info_after["vlgym"], "two infos share a dict")
    env.close()
    return "images and infos are fresh at every call"


def check_side_effects(subject: Subject) -> str:
    """Nothing is printed, and the process-global random generators stay as they were."""
    python_state, numpy_state = random.getstate(), np.random.get_state(legacy=True)
    with tempfile.TemporaryFile() as captured:
        saved = os.dup(1)
        sys.stdout.flush()
        os.dup2(captured.fileno(), 1)
        try:
            env = subject.make()
            env.reset(seed=1)
            for _ in range(3):
                if any(env.step(env.action_space.sample())[2:4]):
                    env.reset(seed=2)
            env.close()
            sys.stdout.flush()
        finally:
            os.dup2(saved, 1)
            os.close(saved)
        captured.seek(0)
        printed = captured.read()
    _require(not printed, f"it printed {printed[:80]!r}")
    _require(random.getstate() == python_state, "it drew from the global random module")
    _require(bool(np.array_equal(np.random.get_state(legacy=True)[1], numpy_state[1])), "it drew from numpy's global generator")
    return "silent; global generators untouched"


def check_vector(subject: Subject) -> str:
    """Sync and async vectorisation, in both autoreset modes, give what single environments give."""
    steps = 6
    seeds = [episode_seed(subject.spec.id, "train", index) for index in range(2)]
    expected = []
    for seed in seeds:
        env = subject.make()
        observation, _ = env.reset(seed=seed)
        script, lines, replies = [], [observation["text"]], np.random.default_rng(seed)
        for turn in range(steps):
            script.append(scripted_reply(env, replies, turn))
            observation, reward, terminated, truncated, _ = env.step(script[-1])
            lines.append((observation["text"], reward, terminated, truncated))
            if terminated or truncated:
                break
        expected.append((script, lines))
        env.close()
    length = min(len(script) for script, _ in expected)
    for mode in ("sync", "async"):
        for autoreset in (gymnasium.vector.AutoresetMode.SAME_STEP, gymnasium.vector.AutoresetMode.DISABLED):
            vector = gymnasium.make_vec(
                subject.spec.id, num_envs=2, vectorization_mode=mode, vector_kwargs={"autoreset_mode": autoreset}, **subject.kwargs
            )
            try:
                observation, _ = vector.reset(seed=seeds)
                _require(list(observation["text"]) == [lines[0] for _, lines in expected], f"{mode}: reset texts differ")
                for turn in range(length):
                    observation, reward, terminated, truncated, _ = vector.step(tuple(script[turn] for script, _ in expected))
                    for index, (_, lines) in enumerate(expected):
                        text, *rest = lines[turn + 1]
                        got = [float(reward[index]), bool(terminated[index]), bool(truncated[index])]
                        _require(np.isclose(got[0], rest[0]) and got[1:] == rest[1:], f"{mode}, {autoreset}: turn {turn} differs")
                        ended = rest[1] or rest[2]
                        _require(ended or observation["text"][index] == text, f"{mode}, {autoreset}: text of turn {turn} differs")
            finally:
                vector.close()
    return f"sync and async agree with single environments over {length} turns, SAME_STEP and DISABLED"


def check_splits(subject: Subject) -> str:
    """Seeds of the splits are disjoint."""
    seeds = {split: {episode_seed(subject.spec.id, split, index) for index in range(1000)} for split in SPLITS}
    _require(not seeds["train"] & seeds["test"] and not seeds["train"] & seeds["val"] and not seeds["val"] & seeds["test"], "seeds overlap")
    return "1,000 seeds of each split, none shared"


CHECKS: dict[str, Callable[[Subject], str]] = {
    "card": check_card,
    "gymnasium": check_gymnasium,
    "determinism": check_determinism,
    "processes": check_processes,
    "state": check_state,
    "oracle": check_oracle,
    "floor": check_floor,
    "rewards": check_rewards,
    "garbage": check_garbage,
    "turn_limit": check_turn_limit,
    "parsers": check_parsers,
    "prompt": check_prompt,
    "fresh": check_fresh,
    "side_effects": check_side_effects,
    "vector": check_vector,
    "splits": check_splits,
}


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise CheckFailure(message)


def _first_difference(a: list[str], b: list[str]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

"""Play an episode turn by turn and keep the observations for the checks. Garbage replies are of the kinds that
failing models write."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..env import VLEnv
from ..env.seeding import episode_seed
from ..play.trajectory import hash_picture
from ..types import Image, Reply, Turn

_PIECES = (
    "", " ", "\n", "action", "<action>", "</action>", "<action></action>", "<action> </action>", '{"action":',
    '{"action": null}',
    '{"action": ["x"]}', "{{{{", "}}", "<plan>", "</plan>", "<plan>;;</plan>", "__import__('os').system('true')",
    "\x00", "\u202e",
    "\ud83d\ude00", "\u884c\u52d5", "I will think about it.", "0", "-1", "1e309", "NaN", "\\u0000", "%s%n",
    "'; DROP TABLE",
    "<action>fly to the moon</action>", '{"thoughts": "?", "action": "fly to the moon"}',
    "<plan>fly; to; the moon</plan>", "[click]",
    "<|image_pad|>", "<|im_end|>", "a" * 5000, "<action>" * 200, '{"a":' * 100,
)  # fmt: skip


def write_garbage(rng: np.random.Generator, legal: Sequence[str]) -> str:
    """Return a reply that a correct parser should rarely read as a legal action."""
    pieces = [_PIECES[int(i)] for i in rng.integers(len(_PIECES), size=int(rng.integers(1, 4)))]
    kind = int(rng.integers(6))
    if kind == 0:
        pieces.append("".join(chr(int(c)) for c in rng.integers(1, 0x2FFF, size=int(rng.integers(1, 60)))))
    elif kind == 1 and legal:
        pieces.append(f"<action>{legal[int(rng.integers(len(legal)))]} or maybe not</action>")
    elif kind == 2 and legal:
        pieces.append(f"{legal[int(rng.integers(len(legal)))]} or maybe not")
    return "".join(pieces).encode("utf-8", "replace").decode("utf-8")


class GarbagePolicy:
    """Answers every turn with garbage, the same for the same episode and turn."""

    name = "garbage"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply(write_garbage(np.random.default_rng([turn.seed or 0, turn.turn]), turn.legal)) for turn in turns]


GARBAGE = "no action here"
"""A reply that no parser reads an action from."""

Choose = Callable[[VLEnv, int], str]
"""From the environment and the turn to the reply."""


@dataclass(frozen=True)
class StepResult:
    """Result of one call of `reset` (turn 0) or `step`.

    Attributes:
        turn: number of the call within the episode; 0 is the reset.
        reply: what was answered; empty at the reset.
        picture: digest of the image, 16 hexadecimal digits.
        advice: the oracle's action after the call, where it was asked.
    """

    turn: int
    reply: str
    text: str
    picture: str
    reward: Any
    terminated: Any
    truncated: Any
    info: dict[str, Any]
    advice: str | None = None
    legal: tuple[str, ...] = ()

    @property
    def ended(self) -> bool:
        """True if the episode ended with this call."""
        return bool(self.terminated or self.truncated)

    @property
    def acted(self) -> bool:
        """True if this call executed a legal action."""
        return bool(self.info["vlgym"]["actions"]) and not self.info["invalid_action"]

    def outcome(self) -> tuple[Any, ...]:
        """Values that are equal in equal episodes."""
        return self.text, self.picture, self.reward, self.terminated, self.truncated, self.info


def play_episode(
    env: VLEnv,
    seed: int,
    choose: Choose,
    turns: int,
    *,
    ask: bool = False,
    watch: Callable[[VLEnv], None] | None = None,
) -> list[StepResult]:
    """Play one episode, for at most `turns` turns.

    Args:
        ask: also ask the oracle at each turn, and keep its advice.
        watch: called after the reset and after each step.
    """
    observation, info = env.reset(seed=seed)
    steps = [_see(env, 0, "", observation, 0.0, False, False, info, ask)]
    for turn in range(turns):
        if watch is not None:
            watch(env)
        reply = choose(env, turn)
        observation, reward, terminated, truncated, info = env.step(reply)
        ended = bool(terminated or truncated)
        steps.append(_see(env, turn + 1, reply, observation, reward, terminated, truncated, info, ask and not ended))
        if ended:
            break
    return steps


def choose_legal(seed: int, *, garbage_every: int = 0) -> Choose:
    """Return a chooser of random legal actions with its own generator; each `garbage_every`th reply is unreadable."""
    replies = np.random.default_rng(seed)

    def choose(env: VLEnv, turn: int) -> str:
        legal = env.legal_actions()
        action = legal[int(replies.integers(len(legal)))] if legal else ""
        if garbage_every and turn % garbage_every == garbage_every - 1:
            return GARBAGE
        return env.parser.format([action])

    return choose


def choose_idle(env: VLEnv, turn: int) -> str:
    """Return an unreadable reply: the episode lasts to its turn limit."""
    return GARBAGE


def choose_oracle(env: VLEnv, turn: int) -> str:
    """Return the oracle's reply, or the first legal action if it has none."""
    reply = env.solve()
    return env.parser.format(env.legal_actions()[:1]) if reply is None else reply


def repeat(replies: Sequence[str]) -> Choose:
    """Return a chooser of these replies, in this order."""
    return lambda env, turn: replies[turn]


def seeds_of(env_id: str, split: str, count: int, first: int = 0) -> list[int]:
    """Return the seeds of `count` episodes of a split."""
    return [episode_seed(env_id, split, first + index) for index in range(count)]


def digest_picture(image: Image) -> str:
    """Return 16 hexadecimal digits that differ where one pixel differs."""
    return hash_picture(image)[:16]


def first_difference(one: Sequence[StepResult], other: Sequence[StepResult]) -> str | None:
    """Return where and in what two episodes differ, in words; `None` where they are the same."""
    names = ("text", "image", "reward", "terminated", "truncated", "info")
    for a, b in zip(one, other, strict=False):
        for name, x, y in zip(names, a.outcome(), b.outcome(), strict=True):
            if not same(x, y):
                return f"{name} of turn {a.turn}: {_shorten(x)} and {_shorten(y)}"
    return None if len(one) == len(other) else f"{len(one) - 1} turns and {len(other) - 1} turns"


def same(one: Any, other: Any) -> bool:
    """True if two values are equal, arrays and NaN included."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other) or (one != one and other != other)


class Deadline:
    """A time limit on play: slow environments are sampled less, and the evidence says so."""

    def __init__(self, seconds: float) -> None:
        self._until = time.perf_counter() + seconds

    @property
    def over(self) -> bool:
        return time.perf_counter() > self._until


def _see(env: VLEnv, turn: int, reply: str, observation: Any, *rest: Any) -> StepResult:
    reward, terminated, truncated, info, ask = rest
    advice = env.oracle() if ask else None
    legal = tuple(env.legal_actions())
    picture = digest_picture(observation["image"])
    return StepResult(turn, reply, observation["text"], picture, reward, terminated, truncated, info, advice, legal)


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

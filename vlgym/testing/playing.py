"""Play an episode turn by turn and keep the observations; garbage as failing models write it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..env import VLEnv
from ..play.trajectory import hash_picture
from ..types import Image, Reply, Turn

_PIECES = (
    "", " ", "\n", "action", "<action>", "</action>", "<action></action>", "<action> </action>", '{"action":',
    '{"action": null}', '{"action": ["x"]}', "{{{{", "}}", "<plan>", "</plan>", "<plan>;;</plan>",
    "__import__('os').system('true')", "\x00", "\u202e", "\ud83d\ude00", "\u884c\u52d5", "I will think about it.",
    "0", "-1", "1e309", "NaN", "\\u0000", "%s%n", "'; DROP TABLE", "<action>fly to the moon</action>",
    '{"thoughts": "?", "action": "fly to the moon"}', "<plan>fly; to; the moon</plan>", "[click]",
    "<|image_pad|>", "<|im_end|>", "a" * 5000, "<action>" * 200, '{"a":' * 100,
)  # fmt: skip


def write_garbage(rng: np.random.Generator, legal: Sequence[str]) -> str:
    """Return a reply that a correct parser should rarely read as a legal action."""
    pieces = [_PIECES[i] for i in rng.integers(len(_PIECES), size=rng.integers(1, 4))]
    kind = int(rng.integers(6))
    if kind == 0:
        pieces += map(chr, rng.integers(1, 0x2FFF, size=rng.integers(1, 60)))
    elif kind in (1, 2) and legal:
        doubt = f"{legal[int(rng.integers(len(legal)))]} or maybe not"
        pieces.append(f"<action>{doubt}</action>" if kind == 1 else doubt)
    return "".join(pieces).encode("utf-8", "replace").decode("utf-8")


class GarbagePolicy:
    """Answers every turn with garbage, the same for the same episode and turn."""

    name = "garbage"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        seeds = ([turn.seed or 0, turn.turn] for turn in turns)
        draws = map(np.random.default_rng, seeds)
        return [Reply(write_garbage(rng, turn.legal)) for rng, turn in zip(draws, turns, strict=True)]


GARBAGE = "no action here"  # no parser reads an action from it
Choose = Callable[[VLEnv, int], str]  # from the environment and the turn to the reply
Watch = Callable[[VLEnv], None]


@dataclass(frozen=True)
class StepResult:
    """Result of one call of `reset` (turn 0) or `step`.

    Attributes:
        turn: number of the call within the episode; 0 is the reset, with an empty reply.
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


def play_episode(
    env: VLEnv, seed: int, choose: Choose, turns: int, *, ask: bool = False, watch: Watch | None = None
) -> list[StepResult]:
    """Play one episode, for at most `turns` turns.

    Args:
        ask: also ask the oracle at each turn, and keep its advice.
        watch: called before each reply.
    """
    observation, info = env.reset(seed=seed)
    steps = [_see(env, 0, "", ask, observation, 0.0, False, False, info)]
    while len(steps) <= turns and not steps[-1].ended:
        if watch is not None:
            watch(env)
        reply = choose(env, len(steps) - 1)
        steps.append(_see(env, len(steps), reply, ask, *env.step(reply)))
    return steps


def choose_legal(seed: int, *, garbage_every: int = 0) -> Choose:
    """Return a chooser of random legal actions; each `garbage_every`th reply is unreadable."""
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


def digest_picture(image: Image) -> str:
    """Return 16 hexadecimal digits that differ where one pixel differs."""
    return hash_picture(image)[:16]


def first_difference(one: Sequence[StepResult], other: Sequence[StepResult]) -> str | None:
    """Return where and in what two episodes differ, in words; `None` where they are the same."""
    for a, b in zip(one, other, strict=False):
        for name in ("text", "picture", "reward", "terminated", "truncated", "info"):
            x, y = getattr(a, name), getattr(b, name)
            if not same(x, y):
                return f"{name} of turn {a.turn}: {x!r:.60} and {y!r:.60}"
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


def _see(env: VLEnv, turn: int, reply: str, ask: bool, *result: Any) -> StepResult:
    observation, reward, terminated, truncated, info = result
    advice = env.oracle() if ask and not (terminated or truncated) else None
    legal, text, picture = tuple(env.legal_actions()), observation["text"], digest_picture(observation["image"])
    return StepResult(turn, reply, text, picture, reward, terminated, truncated, info, advice, legal)

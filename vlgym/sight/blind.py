"""Blind players: policies that see the text and the legal actions, but not the picture.

A player gets a text, the legal actions, the last feedback and a generator: no environment, no
reward, no seed. Its attributes are its memory of its one episode. This module has two kinds that
fit any environment, `blind_learner` has two that learn, and `EnvSpec.blind` names better ones of a
family. Those import this module and the standard library only, so that they cannot reach the state
of a game. `blind_policies` runs them.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

_WORD = re.compile(r"[a-z]{3,}|\d+")
_SEPARATORS = (", ", "\n", "; ", " ")


class BlindPlayer:
    """Plays one episode without its picture. Subclass it, name it, and define `choose`."""

    name: ClassVar[str] = ""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def hear(self, feedback: str) -> None:
        """Take `info["vlgym"]["feedback"]` of the last action before each choice; by default ignore it."""

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        """Return the next action; `text` is `observation["text"]`, `legal` may be empty."""
        raise TypeError(f"{type(self).__name__} must define choose()")


class Constant(BlindPlayer):
    """Plays one action at every turn, whatever is said."""

    def __init__(self, rng: random.Random, action: str) -> None:
        super().__init__(rng)
        self.action = action

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        return self.action


class Searcher(BlindPlayer):
    """Tries the legal actions in turn.

    First come untried ones in this situation (the set of legal actions), then those that share the
    rarest words with the text, then those that the last action made possible, then the least used.
    """

    name = "searcher"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._tried: Counter[tuple[frozenset[str], str]] = Counter()
        self._used: Counter[str] = Counter()
        self._before: frozenset[str] = frozenset()

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        """Return the action that comes first in that order; an empty text where there is none."""
        if not legal:
            return ""
        situation = frozenset(legal)
        overlap = weigh_words(leave_out_list(text, legal), legal)

        def rank(action: str) -> tuple[float, ...]:
            new = bool(self._before) and action not in self._before
            return self._tried[situation, action], -overlap[action], not new, self._used[action]

        action = min(legal, key=rank)
        self._tried[situation, action] += 1
        self._used[action] += 1
        self._before = situation
        return action


def leave_out_list(text: str, legal: Sequence[str]) -> str:
    """Return a text without its list of legal actions, however that is separated."""
    for separator in _SEPARATORS:
        text = text.replace(separator.join(legal), " ")
    return text


def weigh_words(text: str, legal: Sequence[str]) -> dict[str, float]:
    """Return for each legal action the weight of its words in the text.

    A shared word weighs more, the fewer actions have it. A word of all actions weighs nothing.
    """
    present = set(_WORD.findall(text.lower()))
    words = {action: set(_WORD.findall(action.lower())) for action in legal}
    common = Counter(word for own in words.values() for word in own)
    weights = {word: math.log(len(words) / count) for word, count in common.items()}
    return {action: sum(weights[word] for word in own & present) for action, own in words.items()}

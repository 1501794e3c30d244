"""One turn as every page shows it: prompt, pictures, and the reply with the part that was read as the action."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..types import LearnerNotes, StepRecord
from .words import shorten, split_reply

SHADES = 6
MOST = 5_000  # tokens that are shown


@dataclass(frozen=True)
class Turn:
    """One turn.

    Attributes:
        number: its place in the episode, from 0.
        record: what was read; `None` where nothing could be.
        pictures: of the turn, by the addresses or names that the page needs.
        messages: role and parts of each message of the prompt: a `text`, or the number of a `picture`.
        earlier: number of further messages before these, and of the pictures in them.
        reply: pieces of the reply; the marked one is what was read as the action.
        after: text behind the reply, which nobody read.
        tokens: text, probability in words and shade of each token, where a learner wrote them.
        damage: what is wrong with the record.
    """

    number: int
    record: StepRecord | None = None
    pictures: list[str] = field(default_factory=list)
    messages: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    earlier: tuple[int, int] = (0, 0)
    reply: list[tuple[str, bool]] = field(default_factory=list)
    after: str = ""
    tokens: list[tuple[str, str, int]] = field(default_factory=list)
    damage: str = ""

    @property
    def notes(self) -> LearnerNotes:
        """The learner's notes on this turn, empty if there are none."""
        return (self.record and self.record.learner) or LearnerNotes()


def show_turn(
    record: StepRecord,
    longest: int,
    *,
    own: str | None = None,
    only_last: bool = False,
    find: Callable[[str], str] = str,
    damage: str = "",
) -> Turn:
    """Return a turn whose prompt holds the names of its pictures.

    Args:
        record: of the turn.
        longest: characters of a text in one piece.
        own: name of the turn's own picture, which is the first one then.
        only_last: show the last message of the prompt only.
        find: from a picture's name to what stands for it on the page.
        damage: what is wrong with the record.

    Raises:
        TypeError: the name of a picture is no text.
    """
    left_out = record.messages[:-1] if only_last else []
    places: dict[str, int] = {} if own is None else {own: 0}
    messages = []
    for message in record.messages[len(left_out) :]:
        parts: list[dict[str, Any]] = []
        for part in message["content"]:
            if part["type"] == "image":
                parts.append({"picture": places.setdefault(part["file_name"], len(places))})
            else:
                parts.append({"text": shorten(part["text"], longest)})
        messages.append((message["role"], parts))
    if not all(isinstance(name, str) for name in places):
        raise TypeError("the name of a picture is no text")
    images = sum(part["type"] == "image" for message in left_out for part in message["content"])
    reply, notes = split_reply(record.reply, record.span, longest), record.learner or LearnerNotes()
    pairs = zip(notes.tokens[:MOST], notes.log_probs, strict=False)
    tokens = [(text, f"{100 * math.exp(min(0.0, log_prob)):.3g} %", shade(log_prob)) for text, log_prob in pairs]
    pictures = [find(name) for name in places]
    after = shorten(record.after, longest)
    return Turn(record.turn, record, pictures, messages, (len(left_out), images), reply, after, tokens, damage)


def shade(log_prob: float) -> int:
    """Return how dark a token is: in even steps of its logarithm, from probability 1 to 1 in 20."""
    return round(max(0.0, min(1.0, -log_prob / math.log(20))) * SHADES)

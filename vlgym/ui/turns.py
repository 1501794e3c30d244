"""One turn as the page shows it: its line is read again."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import plain_line
from ..files import FIELD, unseal
from ..play.trajectory import MALFORMED, METADATA, NO_PICTURE, read_record
from ..reports.words import shorten, split_reply
from ..types import LearnerNotes, Message, StepRecord
from .guarding import open_inside
from .index import Episode, read_row

SHADES = 6
MOST = 5_000  # tokens that are shown


def read_tokens(learner: LearnerNotes) -> list[tuple[str, str, int]]:
    """Return text, probability in words and shade of the tokens of a learner's notes."""
    pairs = zip(learner.tokens[:MOST], learner.log_probs, strict=False)
    return [(text, f"{100 * math.exp(min(0.0, log_prob)):.3g} %", shade(log_prob)) for text, log_prob in pairs]


def shade(log_prob: float) -> int:
    """Return how dark a token is: in even steps of its logarithm, from probability 1 to 1 in 20."""
    return round(max(0.0, min(1.0, -log_prob / math.log(20))) * SHADES)


LONGEST = 60_000  # characters of a text in one piece
LARGEST_PICTURE = 32_000_000  # bytes
_KINDS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))


@dataclass(frozen=True)
class Turn:
    """One turn.

    Attributes:
        folder: of its records.
        number: its place in the episode, from 0.
        picture: number of the turn's own picture in `pictures`; `None` where it has none.
        messages: role and parts of each message of the prompt, as it was sent: a `text`, or the number of a `picture`.
        pictures: names of the files of all pictures, as the record says.
        reply: pieces of the reply; the marked one is what was read as the action.
        tokens: of the reply, where the learner wrote them.
        value, advantage: what the learner wrote; else `None`.
    """

    folder: Path
    number: int
    picture: int | None = None
    messages: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    reply: list[tuple[str, bool]] = field(default_factory=list)
    after: str = ""
    actions: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    tokens: list[tuple[str, str, int]] = field(default_factory=list)
    value: float | None = None
    advantage: float | None = None
    damage: str = ""


def read_turn(folder: Path, episode: Episode, number: int) -> Turn:
    """Read a turn of an episode."""
    start, size = episode.offsets[number]
    try:
        with open_inside(folder, METADATA) as file:
            file.seek(start)
            row = read_row(file.read(size))
        record = read_record(row, defaultdict(lambda: NO_PICTURE))
        places = _number_pictures(record.messages, {row["file_name"]: 0})
    except (OSError, *MALFORMED) as error:
        return Turn(folder, number, damage=f"The record cannot be read: {plain_line(str(error))}")
    damage = ""
    try:
        unseal(row, required=FIELD in row)
    except (ValueError, RecursionError) as error:
        damage = f"This record is not as it was written: {error}"
    messages = [(message["role"], _show_parts(message["content"], places)) for message in record.messages]
    notes = record.learner or LearnerNotes()
    return Turn(
        folder, number, 0, messages, list(places), split_reply(record.reply, record.span, LONGEST),
        shorten(record.after, LONGEST), list(record.actions), list(_list_facts(record)), read_tokens(notes),
        notes.value, notes.advantage, damage,
    )  # fmt: skip


def open_picture(turn: Turn, number: int) -> tuple[bytes, str]:
    """Return the bytes of a picture and what they are.

    Raises:
        OSError: there is no such file inside the turn's folder.
        ValueError: it is no picture.
    """
    with open_inside(turn.folder, turn.pictures[number]) as file:
        data = file.read(LARGEST_PICTURE + 1)
    for beginning, kind in _KINDS:
        if data.startswith(beginning) and len(data) <= LARGEST_PICTURE:
            return data, kind
    raise ValueError("it is no PNG or JPEG picture of a sensible size")


def _number_pictures(messages: Iterable[Message], places: dict[str, int]) -> dict[str, int]:
    """Give each picture of a prompt its place in the list of all that the turn names."""
    for message in messages:
        for part in message["content"]:
            if part["type"] == "image":
                places.setdefault(part["file_name"], len(places))
    if not all(isinstance(name, str) for name in places):
        raise TypeError("the name of a picture is no text")
    return places


def _show_parts(content: Iterable[Mapping[str, Any]], places: Mapping[str, int]) -> list[dict[str, Any]]:
    return [
        {"picture": places[part["file_name"]]} if part["type"] == "image" else {"text": shorten(part["text"], LONGEST)}
        for part in content
    ]


def _list_facts(record: StepRecord) -> Iterator[tuple[str, str]]:
    if record.score is not None:
        yield "score", f"{record.score:g}"
    for name, words in (("cut", "cut by a limit"), ("refused", "the model refused"), ("invalid", "no legal action")):
        if getattr(record, name):
            yield "reply", words
    if record.usage is not None:
        yield "prompt tokens", str(record.usage.prompt_tokens)
        yield "reply tokens", str(record.usage.completion_tokens)
        yield "time", f"{record.usage.seconds:.3g} s"

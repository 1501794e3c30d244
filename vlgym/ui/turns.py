"""One turn as the page shows it: its line is read again, and each thing in it is taken as what it should be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..checksums import FIELD, unseal
from ..trajectory import METADATA
from .files import open_inside
from .heat import read_tokens
from .index import Episode
from .lines import as_name, as_number, as_text, read_row

LONGEST = 60_000  # characters of a text in one piece
MOST_PARTS = 2_000  # parts of a prompt
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
        after: what the model wrote after its reply was over.
        actions: that were executed.
        facts: name and value of the smaller things.
        tokens: of the reply, where the learner wrote them.
        value, advantage: what the learner wrote; else `None`.
        damage: what is wrong with the record; else empty.
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
    """Read a turn of an episode.

    Args:
        folder: of its records.
        episode: from the index.
        number: of the turn, less than `episode.turns`.
    """
    start, size = episode.offsets[number]
    try:
        with open_inside(folder, METADATA) as file:
            file.seek(start)
            row = read_row(file.read(size))
    except (OSError, ValueError) as error:
        return Turn(folder, number, damage=f"The record cannot be read: {error}")
    damage = ""
    try:
        unseal(row, required=FIELD in row)
    except (ValueError, RecursionError) as error:
        damage = f"This record is not as it was written: {error}"
    pictures: list[str] = []
    own = _number_picture(row.get("file_name"), pictures)
    messages = list(_read_messages(row.get("prompt"), pictures))
    learner = row["learner"] if isinstance(row.get("learner"), Mapping) else {}
    return Turn(
        folder, number, own, messages, pictures, split_reply(as_text(row.get("reply")), row.get("span")),
        shorten(as_text(row.get("after"))), [as_name(each) for each in _list(row.get("actions"))[:100]],
        list(_list_facts(row)), read_tokens(learner), as_number(learner.get("value")),
        as_number(learner.get("advantage")), damage,
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


def split_reply(reply: str, span: Any) -> list[tuple[str, bool]]:
    """Return the pieces of a reply and whether each is what was read as the action."""
    bounds = [each for each in _list(span)[:2] if type(each) is int]
    start, end = bounds if len(bounds) == 2 and 0 <= bounds[0] <= bounds[1] <= len(reply) else (len(reply),) * 2
    pieces = [(reply[:start], False), (reply[start:end], True), (reply[end:], False)]
    return [(shorten(text), marked) for text, marked in pieces if text]


def shorten(text: str) -> str:
    """Return the text, or its beginning and its end where it is too long for a page."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def _read_messages(said: Any, pictures: list[str]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The prompt, which a record holds as JSON in a text."""
    try:
        messages = json.loads(as_text(said))
    except (ValueError, RecursionError):
        return
    count = 0
    for message in _list(messages):
        parts: list[dict[str, Any]] = []
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else _list(content):
            count += 1
            if not isinstance(part, Mapping) or count > MOST_PARTS:
                continue
            if part.get("type") == "image":
                number = _number_picture(part.get("file_name"), pictures)
                if number is not None:
                    parts.append({"picture": number})
            else:
                parts.append({"text": shorten(as_text(part.get("text")))})
        if isinstance(message, Mapping):
            yield as_name(message.get("role")) or "?", parts


def _number_picture(name: Any, pictures: list[str]) -> int | None:
    """The place of a picture in the list; each is in it once."""
    if not as_text(name):
        return None
    if name not in pictures:
        pictures.append(name)
    return pictures.index(name)


def _list_facts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if (score := as_number(row.get("score"))) is not None:
        yield "score", f"{score:g}"
    for name, words in (("cut", "cut by a limit"), ("refused", "the model refused"), ("invalid", "no legal action")):
        if row.get(name) is True:
            yield "reply", words
    usage = row.get("usage")
    if isinstance(usage, Mapping):
        for name, words in (("prompt_tokens", "prompt tokens"), ("completion_tokens", "reply tokens")):
            if (number := as_number(usage.get(name))) is not None:
                yield words, f"{number:g}"
        if (number := as_number(usage.get("seconds"))) is not None:
            yield "time", f"{number:.3g} s"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

"""Ten episodes to look at: five won and five lost, with what the model saw, wrote and was paid.

Which ones follows from the records alone. Their pictures are made small enough for a page.
"""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image as PILImage

from ..play.trajectory import read_picture
from ..types import StepRecord
from .records import PICTURES, Episode, Run, iterate_episodes
from .turns import Turn, show_turn

EACH = 5  # episodes won, and lost
FIRST, LAST = 5, 3  # turns of an episode that are shown
LARGEST = 384  # pixels of a picture's longer side
LONGEST = 3000  # characters of a text in one piece
FLAT = 30_000  # bytes up to which a picture stays a PNG; a photograph is smaller as JPEG

RULE = (
    "The parts of which an episode was won are taken in alphabetical order (five spread evenly over them where there "
    "are more), and of each the won episode with the lowest number; then the next one of each, until there are five. "
    "The lost ones are chosen the same way."
)


@dataclass(frozen=True)
class ShownEpisode:
    """One episode as the page shows it.

    Attributes:
        turns: the turns that are shown; `None` stands for those left out.
        left_out: how many these are.
    """

    part: str
    number: int
    seed: int | None
    won: bool
    total: float
    length: int
    turns: list[Turn | None]
    left_out: int


def choose_episodes(run: Run, played: Mapping[str, Sequence[Episode]]) -> list[tuple[str, int]]:
    """Return part and number of the episodes to look at, the won ones first (see `RULE`)."""
    chosen = []
    for won in (True, False):
        columns = []
        for key, part in run.parts.items():
            numbers = [each[0].episode for each in played[key] if each[-1].success == won]
            if numbers and part.pictures == PICTURES[0]:
                columns.append([(key, number) for number in numbers])
        columns = spread(columns, EACH)
        rows = range(max(map(len, columns), default=0))
        chosen += [column[row] for row in rows for column in columns if row < len(column)][:EACH]
    return chosen


def spread(items: Sequence[Any], count: int) -> list[Any]:
    """Return `count` items at even distances, the first and the last among them; all where there are fewer."""
    if len(items) <= count:
        return list(items)
    return [items[round(index * (len(items) - 1) / (count - 1))] for index in range(count)]


def show_episodes(run: Run, chosen: Iterable[tuple[str, int]]) -> list[ShownEpisode]:
    """Read the chosen episodes again, with their prompts and pictures, and return them in the given order."""
    order = {place: index for index, place in enumerate(chosen)}
    pictures, found = functools.cache(functools.partial(_read_picture, run)), {}
    for episode in iterate_episodes(run) if order else ():
        place = (episode[0].part, episode[0].episode)
        if place in order:
            found[order[place]] = _show(episode, pictures)
    return [found[index] for index in sorted(found)]


def _show(episode: Episode, find: Callable[[str], str]) -> ShownEpisode:
    first, last = episode[0], episode[-1]
    whole = len(episode) <= FIRST + LAST
    shown: list[StepRecord | None] = [*episode] if whole else [*episode[:FIRST], None, *episode[-LAST:]]
    turns = [None if record is None else show_turn(record, LONGEST, only_last=True, find=find) for record in shown]
    total = sum(record.reward for record in episode)
    left_out = 0 if whole else len(episode) - FIRST - LAST
    return ShownEpisode(first.part, first.episode, first.seed, last.success, total, len(episode), turns, left_out)


def _read_picture(run: Run, name: str) -> str:
    """Return a picture of the folder as a data URL."""
    picture = PILImage.fromarray(read_picture(run.folder, name)[1])
    if max(picture.size) > LARGEST:
        picture.thumbnail((LARGEST, LARGEST), PILImage.Resampling.LANCZOS)
    data, kind = _encode(picture, "PNG", optimize=True), "png"
    if len(data) > FLAT:
        data, kind = min((data, kind), (_encode(picture, "JPEG", quality=85), "jpeg"), key=lambda pair: len(pair[0]))
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _encode(picture: Any, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()

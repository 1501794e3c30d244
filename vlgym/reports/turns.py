"""One turn as every page shows it (`turns.html`), and the ten episodes that a report shows."""

import base64
import functools
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image as PILImage

from ..evaluation.folder import read_episodes
from ..play.controls import SHOWN
from ..play.trajectory import read_picture
from ..types import LearnerNotes, StepRecord
from .records import RecordedRun

SHADES = 6
MOST_TOKENS = 5_000  # tokens of a turn that are shown
EACH = 5  # episodes won, and lost
PICTURE_SIDE = 384  # pixels of a picture's longer side
RULE = "Five won and five lost episodes are shown, at even distances in the order of their parts and numbers."


@dataclass(frozen=True)
class ShownTurn:
    """One turn; `find` returns a picture's address on the page, `damage` is an error in the record.

    A `record`, if one could be read, has a prompt with the names of its pictures.
    """

    number: int
    record: StepRecord | None = None
    find: Callable[[Mapping[str, Any]], str] = str
    damage: str = ""

    @property
    def notes(self) -> LearnerNotes:
        """The learner's notes on this turn, empty if there are none."""
        return (self.record and self.record.learner) or LearnerNotes()

    @property
    def tokens(self) -> list[tuple[str, str, int]]:
        """Text, probability in words and shade of each token, where a learner wrote them."""
        pairs = zip(self.notes.tokens[:MOST_TOKENS], self.notes.log_probs, strict=False)
        return [(text, f"{100 * math.exp(min(0.0, log)):.3g} %", shade(log)) for text, log in pairs]


def shade(log_prob: float) -> int:
    """Return how dark a token is: in even steps of its logarithm, from probability 1 to 1/20."""
    return round(max(0.0, min(1.0, -log_prob / math.log(20))) * SHADES)


def spread(items: Sequence[Any], count: int) -> list[Any]:
    """Return `count` items at even distances, the first and the last among them; or all."""
    if len(items) <= count:
        return list(items)
    return [items[round(index * (len(items) - 1) / (count - 1))] for index in range(count)]


def choose_episodes(run: RecordedRun) -> list[tuple[str, int]]:
    """Return part and number of the episodes to look at, the won ones first (see `RULE`)."""
    keys = [key for key, part in run.parts.items() if part.pictures == SHOWN]
    shown = [episode for key in keys for episode in run.played[key]]
    chosen = [spread([each for each in shown if each[-1].success == won], EACH) for won in (True, False)]
    return [(episode[0].part, episode[0].episode) for side in chosen for episode in side]


def show_episodes(run: RecordedRun, chosen: Iterable[tuple[str, int]]) -> list[list[ShownTurn]]:
    """Read the chosen episodes again, with their prompts and pictures; return their turns."""
    read = functools.cache(functools.partial(_read_picture, run))

    def find(part: Mapping[str, Any]) -> str:
        return read(part["file_name"])

    turns: dict[tuple[str, int], list[ShownTurn]] = {place: [] for place in chosen}
    for _, episode in read_episodes(run.folder, run.header) if turns else ():
        place = (episode[0].part, episode[0].episode)
        if place in turns:
            turns[place] = [ShownTurn(each.turn, each, find) for each in episode]
    return list(turns.values())


def _read_picture(run: RecordedRun, name: str) -> str:
    """Return a picture of the folder as a data URL, small enough for a page."""
    picture = PILImage.fromarray(read_picture(run.folder, name)[1])
    picture.thumbnail((PICTURE_SIDE, PICTURE_SIDE), PILImage.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", lossless=True)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"

"""Canary: does a picture reach the model? The answer stands in one picture of an episode only."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlgym.errors import check_choice, check_number
from vlgym.types import Outcome

from .colours import NEXT, Series
from .drawing import COLOURS, GROUND, Canvas
from .letters import WORDS

ANSWERS = {"colour": tuple(COLOURS), "digit": tuple("0123456789"), "word": WORDS}
_SIZES = {"digit": 0.6, "word": 0.2}


class Canary(Series):
    """Canary: tell what one picture showed.

    Goal: look at the pictures of the episode, one a turn, and say in the last turn what the picture
        of turn `asked` shows.
    Observation: in every turn a picture, 224 x 224 pixels by default, with one disc, digit or word;
        its place varies. Text, legal actions and feedback are the same for all seeds. No two
        pictures of an episode depend on each other.
    Actions: `next` in every turn but the last; then one of 8 colours, 10 digits or 12 words.
    Reward: 1 for the right answer, else 0.
    Endings: terminated by the answer, and by an unreadable reply (`invalid_action="terminate"`).
    Success: the right answer. Without the picture of turn `asked` no policy is right with a
        probability above 1/8 (CanaryColour), 1/10 (CanaryDigit) or 1/12 (CanaryMemory).
    Info: `answer`, `given`, `shown`: what the pictures show, in order. Splits differ by seed.
    Oracle: exact.
    References: none; it is vlgym's own.

    Args:
        shows: what a picture shows: `colour`, `digit` or `word`.
        pictures: how many there are, one a turn; at most `max_turns`.
        asked: the turn, from 1, whose picture is asked for.
    """

    def __init__(self, *, shows: str = "colour", pictures: int = 1, asked: int = 1, **kwargs: Any) -> None:
        self.answers = ANSWERS[check_choice("shows", shows, ANSWERS)]
        super().__init__(**kwargs)
        check_number("pictures", pictures, 1, self.max_turns)
        check_number("asked", asked, 1, pictures)
        self.shows, self.pictures, self.asked = shows, pictures, asked

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        drawn = rng.integers(len(self.answers), size=self.pictures)
        self.shown = [self.answers[int(index)] for index in drawn]
        self.answer, self.given, self._place = self.shown[self.asked - 1], None, 0
        self.looks = {"places": rng.uniform(0.4, 0.6, size=(self.pictures, 2)).tolist()}

    def act(self, action: str) -> Outcome:
        """Go on, or answer; the feedback says nothing of the answer."""
        outcome = super().act(action)
        return replace(outcome, feedback="answered") if outcome.terminated else outcome

    def think(self, action: str) -> str:
        """Return a thought in the last turn: an earlier one would make the history needless."""
        shown = f"Picture {self.asked} shows the {self.shows} {self.answer}."
        return "" if action == NEXT else shown

    def task(self) -> str:
        question = f"which {self.shows} picture {self.asked} shows"
        if self.pictures == 1:
            return f"Look at the picture and say {question}."
        order = f"Go on with next; with the last one say {question}"
        return f"You see {self.pictures} pictures, one a turn. {order}."

    def state_text(self) -> str:
        return f"Picture {self._place + 1} of {self.pictures}."

    def image(self) -> NDArray[np.uint8]:
        shown, (x, y) = self.shown[self._place], self.looks["places"][self._place]
        if self.shows == "colour":
            canvas = Canvas(self.image_size, GROUND)
            canvas.disc(x, y, 0.3, COLOURS[shown])
        else:
            canvas = Canvas(self.image_size, COLOURS["white"])
            canvas.centre(shown, x, y, _SIZES[self.shows], COLOURS["black"])
        return canvas.finish()

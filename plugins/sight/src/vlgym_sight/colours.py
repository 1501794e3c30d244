"""Colours: of one shape, and of one picture out of four that were shown turn after turn."""

import zlib
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vlgym.env.prompts import PromptTemplate
from vlgym.types import Outcome

from .drawing import COLOURS, GROUND, SHAPES, Canvas
from .question import Question, choose

NEXT = "next"


class SeeColour(Question):
    """SeeColour: name a colour.

    Goal: say what colour the shape has.
    Observation: a picture of 224 x 224 pixels with one shape on grey; shape, size and place vary. The
        text is the same for every episode.
    Actions: `red`, `orange`, `yellow`, `green`, `blue`, `purple`, `black`, `white`.
    Reward: 1 for the right colour, else 0.
    Endings: terminated by the answer; an unreadable reply is the only turn, and truncates.
    Success: the right colour. Guessing is right in 1 of 8 episodes.
    Info: `answer`, `given`. Splits differ by seed only. Oracle: exact.
    References: none; it is vlgym's own.
    """

    topic = "colours"
    answers = tuple(COLOURS)
    skipped = 71

    def task(self) -> str:
        return "It shows one shape on a grey ground. What colour is the shape?"

    def draw_looks(self, rng: np.random.Generator) -> dict[str, Any]:
        x, y = rng.uniform(0.38, 0.62, size=2)
        radius = float(rng.uniform(0.22, 0.34))
        return {"shape": choose(rng, SHAPES), "x": float(x), "y": float(y), "radius": radius}

    def image(self) -> NDArray[np.uint8]:
        canvas = Canvas(self.image_size, GROUND)
        looks = self.looks
        canvas.shape(looks["shape"], looks["x"], looks["y"], looks["radius"], COLOURS[self.answer])
        return canvas.finish()


class Series(Question):
    """A question about one of several pictures, shown one a turn; the last turn asks it."""

    prompt = PromptTemplate(version=1, instructions="{task}\n{format}", turn="{state}\nLegal actions: {actions}")
    shown: Sequence[str]
    _place = 0

    def act(self, action: str) -> Outcome:
        if action == NEXT:
            self._place += 1
            return Outcome(feedback="next picture")
        return super().act(action)

    def legal_actions(self) -> list[str]:
        """Return `next`, and with the last picture every answer."""
        return list(self.answers) if self._at_last() else [NEXT]

    def oracle(self) -> str:
        return self.answer if self._at_last() else NEXT

    def extra_info(self) -> dict[str, Any]:
        return {**super().extra_info(), "shown": list(self.shown)}

    def _at_last(self) -> bool:
        return self._place == len(self.shown) - 1


class SeeHistory(Series):
    """SeeHistory: remember pictures, and their order.

    Goal: look at four pictures, one a turn, and say what colour one of them had, as the last asks.
    Observation: four pictures of 224 x 224 pixels, each of one colour: all over, or one large shape
        on grey (the same in an episode). The four colours differ. The text says which picture of
        four this is, and with the fourth it asks for the first, the second, the third or the last.
        By default the prompt holds all three past turns with their pictures.
    Actions: `next` in turns 1 to 3; then one of the eight colours, shown or not.
    Reward: 1 for the right colour, else 0.
    Endings: terminated by the answer, and by an unreadable reply (`invalid_action="terminate"`);
        truncated after 4 turns where `invalid_action` is another.
    Success: the right colour. Guessing is right in 1 of 8 episodes.
    Info: `answer`, `given`, `shown`: the four colours in order, `asked`: the asked place, 0 to 3.
    Splits: no four colours in the same order are shown in two splits. Oracle: exact.
    References: none; it is vlgym's own.
    """

    topic = "pictures of earlier turns"
    answers = tuple(COLOURS)
    skipped = 1078
    asked_as: ClassVar[tuple[str, ...]] = ("first", "second", "third", "last")

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        rng.random(self.skipped)
        order: list[int] = []
        while not order or find_split(order, len(self.answers)) != (self.seed_split or "train"):
            order = [int(index) for index in rng.permutation(len(self.answers))[: len(self.asked_as)]]
        self.shown = tuple(self.answers[index] for index in order)
        self.asked = int(rng.integers(len(self.shown)))
        self.answer, self.given, self._place = self.shown[self.asked], None, 0
        self.looks = self.draw_looks(rng)

    def draw_looks(self, rng: np.random.Generator) -> dict[str, Any]:
        return {"shape": choose(rng, ("", *SHAPES))}

    def task(self) -> str:
        return (
            "You see four pictures, one a turn. Each has one colour: all over, or one shape on a grey ground. Look at "
            "each and go on with next. With the fourth you are asked what colour one of them has."
        )

    def state_text(self) -> str:
        begun = f"Picture {self._place + 1} of {len(self.shown)}."
        if not self._at_last():
            return begun
        return f"{begun} Question: what colour has the {self.asked_as[self.asked]} of the four pictures?"

    def image(self) -> NDArray[np.uint8]:
        colour = COLOURS[self.shown[self._place]]
        if not self.looks["shape"]:
            return Canvas(self.image_size, colour).finish()
        canvas = Canvas(self.image_size, GROUND)
        canvas.shape(self.looks["shape"], 0.5, 0.5, 0.38, colour)
        return canvas.finish()

    def extra_info(self) -> dict[str, Any]:
        return {**super().extra_info(), "asked": self.asked}


def find_split(order: Sequence[int], colours: int) -> str:
    """Return the split that shows an order of colours, or any turn of it on the colour wheel."""
    steps = bytes((index - order[0]) % colours for index in order)
    return {0: "test", 1: "val"}.get(zlib.crc32(steps) % 10, "train")

"""Probes of reading: a digit, a word at three sizes, a playing card."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .drawing import COLOURS, SUITS, Canvas, fade
from .question import Question, choose

_WORDS = "apple bread chair cloud grass horse house light mouse plant stone table"
_ALIKE = "hoist horns horse hoses hours house moist month morse mouse mouth noses norse nurse tours worse"
_RANKS = "ace two three four five six seven eight nine ten jack queen king"
WORDS, ALIKE, RANKS = (tuple(line.split()) for line in (_WORDS, _ALIKE, _RANKS))
SIZES = {"small": 1 / 16, "medium": 1 / 9, "large": 1 / 5}  # of the font, in shorter sides

_INKS = (("black", "white"), ("white", "black"), ("blue", "white"), ("white", "blue"), ("black", "yellow"))
_TWO_DIGITS = tuple(str(number) for number in range(10, 100))
_FELT = (53, 101, 77)
_RED, _BLACK = (200, 20, 35), (15, 15, 15)


class SeeDigit(Question):
    """SeeDigit: read one digit.

    Goal: say which digit the picture shows.
    Observation: a picture of 224 x 224 pixels with one large digit; place, size and colours
        vary. The text is the same for every episode.
    Actions: `0` to `9`; on levels 0, 3 and 4 other numbers, those that the text lists.
    Reward: 1 for the right digit, else 0.
    Endings: terminated by the answer; an unreadable reply is the only turn, and truncates.
    Success: the right digit. Guessing is right in 10 % of the episodes.
    Info: `answer`, `given`. Splits differ by seed only. Oracle: exact.
    References: none; it is vlgym's own.

    Options of `reset`: `level`, 0 to 4.
    """

    topic = "digits"
    answers = tuple("0123456789")
    skipped = 75
    places: tuple[float, float] = (0.35, 0.65)  # of the middle, in shares of the shorter side
    sizes: tuple[float, float] = (0.55, 0.75)  # of the font, in shares of it
    level_arguments: ClassVar = (
        {"answers": tuple("0123")},
        {},
        {"places": (0.1, 0.9), "sizes": (0.15, 0.2)},
        {"answers": _TWO_DIGITS, "places": (0.15, 0.85), "sizes": (0.15, 0.2)},
        {"answers": _TWO_DIGITS, "places": (0.15, 0.85), "sizes": (0.09, 0.12), "contrast": 0.35},
    )

    def task(self) -> str:
        if len(self.answers[0]) > 1:
            return "It shows one number of two digits. Which number is it?"
        return "It shows one digit. Which digit is it?"

    def draw_looks(self, rng: np.random.Generator) -> dict[str, Any]:
        x, y = rng.uniform(*self.places, size=2)
        return {"x": float(x), "y": float(y), "size": float(rng.uniform(*self.sizes)), "inks": choose(rng, _INKS)}

    def image(self) -> NDArray[np.uint8]:
        ink, ground = (COLOURS[name] for name in self.looks["inks"])
        canvas = Canvas(self.image_size, ground)
        colour = fade(ink, ground, self.contrast)
        canvas.centre(self.answer, self.looks["x"], self.looks["y"], self.looks["size"], colour)
        return canvas.finish()


class SeeText(Question):
    """SeeText: read one word, in large, medium or small letters.

    Goal: say which word of the list the picture shows.
    Observation: a picture of 224 x 224 pixels with one word of five letters. Its font size is
        1/5, 1/9 or 1/16 of the shorter side (45, 25 or 14 pixels of 224), drawn uniformly;
        place and colours vary. The text is the same for every episode.
    Actions: the 12 words of the list.
    Reward: 1 for the right word, else 0.
    Endings: terminated by the answer; an unreadable reply is the only turn, and truncates.
    Success: the right word. Guessing is right in 1 of 12 episodes.
    Info: `answer`, `given`, `level`: `small`, `medium` or `large`. Splits differ by seed only.
    Oracle: exact.
    References: none; it is vlgym's own.

    Options of `reset`: `level`, 0 to 4, the difficulty; `info["level"]` is the size of the letters.
    """

    topic = "text"
    answers = WORDS
    skipped = 485
    levels: tuple[str, ...] = tuple(SIZES)
    level_arguments: ClassVar = (
        {"answers": WORDS[:4], "levels": ("large",)},
        {"answers": WORDS[:8], "levels": ("medium",)},
        {"levels": ("small",)},
        {"levels": ("small",), "contrast": 0.35},
        {"answers": ALIKE, "levels": ("small",), "contrast": 0.35},
    )

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.level = self.levels[0]

    def task(self) -> str:
        return "It shows one word, in letters of any size. Which word is it?"

    def draw_looks(self, rng: np.random.Generator) -> dict[str, Any]:
        self.level = choose(rng, self.levels)
        x, y = rng.uniform(0, 1, size=2)
        return {"x": float(x), "y": float(y), "inks": choose(rng, _INKS)}

    def image(self) -> NDArray[np.uint8]:
        ink, ground = (COLOURS[name] for name in self.looks["inks"])
        canvas = Canvas(self.image_size, ground)
        size = SIZES[self.level]
        room = max(canvas.width_of(word, size) for word in self.answers)
        x = 0.5 + (self.looks["x"] - 0.5) * (0.96 - room)
        y = 0.5 + (self.looks["y"] - 0.5) * (0.96 - size)
        canvas.centre(self.answer, x, y, size, fade(ink, ground, self.contrast))
        return canvas.finish()

    def extra_info(self) -> dict[str, Any]:
        return {**super().extra_info(), "level": self.level}


class SeeCard(Question):
    """SeeCard: read rank and suit of a playing card.

    Goal: say which card the picture shows.
    Observation: a picture of 224 x 224 pixels with one card: in the corner its rank (A, 2 to
        10, J, Q, K) over its suit, in the middle the suit again. The place varies a little. The text is
        the same for every episode.
    Actions: the 52 cards, from `ace of clubs` to `king of spades`.
    Reward: 1 for the right card, else 0.
    Endings: terminated by the answer; an unreadable reply is the only turn, and truncates.
    Success: rank and suit are right. Guessing is right in 1 of 52 episodes.
    Info: `answer`, `given`. Splits differ by seed only. Oracle: exact.
    References: none; it is vlgym's own.
    """

    topic = "cards"
    answers = tuple(f"{rank} of {suit}" for suit in SUITS for rank in RANKS)
    skipped = 175

    def task(self) -> str:
        return "It shows one playing card. Which card is it?"

    def draw_looks(self, rng: np.random.Generator) -> dict[str, Any]:
        x, y = rng.uniform(-0.04, 0.04, size=2)
        return {"x": float(x), "y": float(y)}

    def image(self) -> NDArray[np.uint8]:
        rank, _, suit = self.answer.split()
        number = RANKS.index(rank) + 1
        sign = str(number) if 2 <= number <= 10 else rank[0].upper()
        ink = _RED if suit in ("diamonds", "hearts") else _BLACK
        x, y = self.looks["x"], self.looks["y"]
        canvas = Canvas(self.image_size, _FELT)
        canvas.area(0.2 + x, 0.06 + y, 0.8 + x, 0.94 + y, COLOURS["white"], 0.05)
        canvas.centre(sign, 0.34 + x, 0.2 + y, 0.22, ink)
        canvas.suit(suit, 0.34 + x, 0.41 + y, 0.09, ink)
        canvas.suit(suit, 0.57 + x, 0.63 + y, 0.2, ink)
        return canvas.finish()

"""Question: base of all probes. An episode is one question, with a uniformly drawn answer."""

from typing import Any, ClassVar

import numpy as np

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.types import Outcome


class Question(VLEnv):
    """A question about a picture.

    `skipped` numbers are drawn and thrown away at the start: the least with which the first 12 test
    questions, those of the suite, have balanced answers. A model that always says `right` must not
    look as if it saw.
    """

    topic: ClassVar[str]  # name in a report
    answers: tuple[str, ...]  # all of them, in the order in which the text lists them
    skipped: ClassVar[int] = 0
    contrast: float = 1.0  # share of the ink's difference from its ground that is drawn
    prompt = PromptTemplate(
        version=1, instructions="Look at the picture. {task}\n{format}", turn="{state}Legal actions: {actions}"
    )

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.answer = self.answers[0]
        self.given: str | None = None
        self.looks: dict[str, Any] = {}  # they do not depend on the answer

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        rng.random(self.skipped)
        self.answer = self.answers[int(rng.integers(len(self.answers)))]
        self.given = None
        self.looks = self.draw_looks(rng)

    def draw_looks(self, rng: np.random.Generator) -> dict[str, Any]:
        """Draw how the picture is varied."""
        raise TypeError(f"{type(self).__name__} must define draw_looks()")

    def act(self, action: str) -> Outcome:
        self.given = action
        return Outcome(float(self.success()), terminated=True, feedback="right" if self.success() else "wrong")

    def legal_actions(self) -> list[str]:
        return list(self.answers)

    def oracle(self) -> str:
        return self.answer

    def success(self) -> bool:
        return self.given == self.answer

    def extra_info(self) -> dict[str, Any]:
        return {"answer": self.answer, "given": self.given}


def choose(rng: np.random.Generator, choices: tuple[Any, ...]) -> Any:
    return choices[int(rng.integers(len(choices)))]

"""One broken environment for each property of the conformance kit: it violates that property and no other."""

import os
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from toys import Walk

from vlgym.env.prompts import PromptTemplate
from vlgym.env.reset_options import ResetOption, whole_number
from vlgym.parsers import TagParser
from vlgym.types import Match, Outcome, Parsed

_PROCESS = os.getpid()
_SHARED: list[int] = [1, 2, 3]


class Broken(Walk):
    """Base of those whose card is sound: the docstring of each says what is broken."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = f"Goal: Observation: Actions: Reward: Endings: References: as `Walk`.\n\n{cls.__doc__}"


class NoCard(Walk):
    """Walks, but says neither what the reward is nor how an episode ends."""


class ListReset(Broken):
    """`reset` returns a list, which Gymnasium forbids."""

    def reset(self, **kwargs: Any) -> Any:
        return list(super().reset(**kwargs))


class Tired(Broken):
    """A long episode shows in the text of the next."""

    steps = 0
    tired = False

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().start(rng, options)
        self.tired, self.steps = self.steps >= 3, 0

    def act(self, action: str) -> Outcome:
        self.steps += 1
        return super().act(action)

    def state_text(self) -> str:
        return super().state_text() + (" You are tired." if self.tired else "")


class Seedless(Broken):
    """Every seed begins the same episode."""

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.target, self.position = 4, 0


class Hashing(Broken):
    """The text holds a hash that differs by process."""

    def state_text(self) -> str:
        return f"{super().state_text()} {hash('cell')}."


class Forgetful(Broken):
    """`load` forgets the target."""

    def save(self) -> dict[str, Any]:
        return {"position": self.position}

    def load(self, state: dict[str, Any]) -> None:
        self.position = state["position"]


class Lent(Broken):
    """A deep copy is the original."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class Lost(Broken):
    """The oracle fails where the target is 5 cells away."""

    def oracle(self) -> str | None:
        wrong = abs(self.target) == 5
        return "right" if (self.target > self.position) != wrong else "left"


class Silent(Broken):
    """Its spec says that there is no oracle, but there is."""


class Easy(Broken):
    """The first step wins, whatever it is."""

    def act(self, action: str) -> Outcome:
        self.position = self.target
        return Outcome(1.0, terminated=True)


class Generous(Broken):
    """It pays 2 where its spec says at most 1."""

    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        return Outcome(2 * outcome.reward, outcome.terminated)


class TouchyParser(TagParser):
    """Raises on a reply that mentions an import."""

    name = "touchy"

    def parse(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> Parsed:
        if "__import__" in text:
            raise ValueError("I do not like this")
        return super().parse(text, legal, matches)


class Touchy(Broken):
    """Read by a parser that raises."""


class RescanningParser(TagParser):
    """Looks for the end again after each beginning."""

    name = "rescanning"

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        for found in re.finditer("<action>", text):
            re.search(r"\d</action>", text[found.end() :])
        return super().parse(text, legal)


class Rescanning(Broken):
    """Read by a parser of quadratic time."""


class Paying(Broken):
    """A long unreadable reply earns something."""

    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        paid = 0.5 if info["invalid_action"] and len(action) > 1000 else 0.0
        return observation, reward + paid, terminated, truncated, info


class PayingPlans(Broken):
    """Nonsense at the end of a plan earns something."""

    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        paid = 0.5 if info["invalid_action"] and info["vlgym"]["actions"] else 0.0
        return observation, reward + paid, terminated, truncated, info


class Impatient(Broken):
    """Five unreadable replies in a row terminate it."""

    bad = 0

    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        self.bad = self.bad + 1 if info["invalid_action"] else 0
        return observation, reward, terminated or self.bad >= 5, truncated, info


class Forgiving(Broken):
    """It goes on after an unreadable reply, whatever `invalid_action` says."""

    def _fail(self, *args: Any) -> Any:
        executed, outcome, failure = super()._fail(*args)
        return executed, replace(outcome, terminated=False), failure


class Semicolon(Broken):
    """An action holds the plan parser's separator."""

    def legal_actions(self) -> list[str]:
        return ["left; slowly", "right"]

    def oracle(self) -> str | None:
        return "right" if self.target > self.position else "left; slowly"


class Accented(Broken):
    """An action cannot stand in the text as it is."""

    def legal_actions(self) -> list[str]:
        return ["\ue000 left", "right"]

    def oracle(self) -> str | None:
        return "right" if self.target > self.position else "\ue000 left"


class Chinese(Broken):
    """In Chinese; nothing is broken."""

    prompt = PromptTemplate(version=1, instructions="走。 {task} {format}", turn="{state} 动作: {actions}.")

    def task(self) -> str:
        return f"走到第 {self.target} 格。"

    def state_text(self) -> str:
        return f"你在第 {self.position} 格。"

    def legal_actions(self) -> list[str]:
        return ["左", "右"]

    def act(self, action: str) -> Outcome:
        return super().act({"左": "left", "右": "right"}[action])

    def oracle(self) -> str | None:
        return "右" if self.target > self.position else "左"


class Folded(Chinese):
    """Its task loses its letters."""

    def _write_instructions(self) -> None:
        super()._write_instructions()
        self.instructions = self.instructions.encode("ascii", "replace").decode()


class Dim(Broken):
    """Its picture has the levels of a truth."""

    def image(self) -> np.ndarray:
        return (super().image() > 100).astype(np.uint8)


class Flat(Broken):
    """Its picture is of one colour."""

    def image(self) -> np.ndarray:
        picture = super().image()
        picture[:] = 100 + self.target, 30, 100 + self.position
        return picture


class Ajar(Broken):
    """`close` leaves the episode open."""

    def close(self) -> None:
        pass


class Aliased(Broken):
    """Every info holds the same list."""

    def extra_info(self) -> dict[str, Any]:
        return {"lengths": _SHARED}


class Canvas(Broken):
    """Every observation is the same array."""

    def image(self) -> np.ndarray:
        if not hasattr(self, "canvas"):
            self.canvas = super().image()
        self.canvas[:] = super().image()
        return self.canvas


class Printing(Broken):
    """It prints its target."""

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().start(rng, options)
        print("target", self.target)


class Writing(Broken):
    """It writes to the descriptor, as a C library does."""

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().start(rng, options)
        os.write(1, b"driver loaded\n")


class PythonDraw(Broken):
    """It draws from Python's global generator."""

    def image(self) -> np.ndarray:
        random.random()
        return super().image()


class NumpyDraw(Broken):
    """It draws from numpy's global generator."""

    def image(self) -> np.ndarray:
        np.random.random()  # noqa: NPY002
        return super().image()


class Costly(Broken):
    """Each step costs 1, and silence nothing."""

    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        return replace(outcome, reward=outcome.reward - 1)


class Setting(Broken):
    """It always sets the same variable."""

    def image(self) -> np.ndarray:
        os.environ["VLGYM_TOY"] = "set"
        return super().image()


class Homesick(Broken):
    """It behaves otherwise in a forked process."""

    def state_text(self) -> str:
        return super().state_text() + ("" if os.getpid() == _PROCESS else " This is not home.")


class SmallSeeds(Broken):
    """It keeps three digits of the seed."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=None if seed is None else seed % 1000, options=options)


class OldPrompt(Broken):
    """Its prompt is of another version than its spec says."""

    prompt = PromptTemplate(version=2, instructions="{task} {format}", turn="{state} Legal actions: {actions}.")


class Deaf(Broken):
    """It ignores options that it does not know."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        known = {name: value for name, value in (options or {}).items() if name in self.reset_options}
        return super().reset(seed=seed, options=known)


class Credulous(Broken):
    """It takes any value of its option `target`."""

    reset_options: ClassVar = {"target": ResetOption("where to go", "a cell", lambda env, value: 3)}


class Hasty(Broken):
    """It looks at the option `target` too late."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.turn += 1
        return super().reset(seed=seed, options=options)


class Telling(Broken):
    """Its words tell of the turn, unseen."""

    def describe(self) -> str:
        return f"{super().describe()}, turn {self.turn}"


class Secretive(Broken):
    """Its card does not name all its options."""

    reset_options: ClassVar = {**Walk.reset_options, "whither": whole_number("where to go", -5, 5)}


class Backwards(Broken):
    """Its last `level` is the easiest."""

    level_arguments: ClassVar = ({"far": 5}, {"far": 2})
    far = 3

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().start(rng, options)
        self.target = self.far


class Rising(Backwards):
    level_arguments: ClassVar = ({"far": 2}, {"far": 5})


class TooFar(Backwards):
    level_arguments: ClassVar = ({"far": 2}, {"far": 5, "max_turns": 4})


class Alike(Backwards):
    level_arguments: ClassVar = ({"far": 2}, {"far": 2})

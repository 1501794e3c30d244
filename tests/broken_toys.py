"""One broken environment for each property of the conformance kit, which violates no other."""

import os
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from toys import Walk

from vlgym.env.prompts import PromptTemplate
from vlgym.env.reset_options import ResetOption, whole_number
from vlgym.parsers import TagParser
from vlgym.types import Match, Outcome, Parsed

_PROCESS = os.getpid()
_CARD = "Goal: Observation: Actions: Reward: Endings: References: as `Walk`."


class Broken(Walk):
    """Base of those whose card is sound: the docstring of each says what is broken."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = f"{_CARD}\n\n{cls.__doc__}"


def broken(doc: str, base: type[Walk] = Broken, **parts: Any) -> type[Walk]:
    """Return a class with other parts; its methods get the environment as their first argument."""
    return type("Planted", (base,), {"__module__": __name__, "__doc__": doc, **parts})


class NoCard(Walk):
    """Walks, but says neither what the reward is nor how an episode ends."""


ListReset = broken(
    "`reset` returns a list, which Gymnasium forbids.", reset=lambda env, **options: [*Walk.reset(env, **options)]
)


Seedless = broken(
    "Every seed begins the same episode.", start=lambda env, rng, options: vars(env).update(target=4, position=0)
)
Hashing = broken(
    "The text holds a hash that differs by process.",
    state_text=lambda env: f"{Walk.state_text(env)} {hash('cell')}.",
)


Silent = broken("Its spec says that there is no oracle, but there is.")


class Easy(Broken):
    """The first step wins, whatever it is."""

    def act(self, action: str) -> Outcome:
        self.position = self.target
        return Outcome(1.0, terminated=True)


class Costly(Broken):
    """Each step costs 1, and silence nothing."""

    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        return replace(outcome, reward=outcome.reward - 1)


class TouchyParser(TagParser):
    """Raises on a reply that mentions an import."""

    name = "touchy"

    def parse(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> Parsed:
        if "__import__" in text:
            raise ValueError("I do not like this")
        return super().parse(text, legal, matches)


class RescanningParser(TagParser):
    """Looks for the end again after each beginning."""

    name = "rescanning"

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        for match in re.finditer("<action>", text):
            re.search(r"\d</action>", text[match.end() :])
        return super().parse(text, legal)


Touchy = broken("Read by a parser that raises.")
Rescanning = broken("Read by a parser of quadratic time.")


class Paying(Broken):
    """A long unreadable reply earns something."""

    def step(self, action: str) -> Any:
        observation, reward, *flags, info = super().step(action)
        paid = 0.5 if info["invalid_action"] and len(action) > 1000 else 0.0
        return observation, reward + paid, *flags, info


class PayingPlans(Broken):
    """Nonsense at the end of a plan earns something."""

    def step(self, action: str) -> Any:
        observation, reward, *flags, info = super().step(action)
        paid = 0.5 if info["invalid_action"] and info["vlgym"]["actions"] else 0.0
        return observation, reward + paid, *flags, info


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


Semicolon = broken(
    "An action holds the plan parser's separator.",
    legal_actions=lambda env: ["left; slowly", "right"],
    oracle=lambda env: "right" if env.target > env.position else "left; slowly",
)
Accented = broken(
    "An action cannot stand in the text as it is.",
    legal_actions=lambda env: ["\ue000 left", "right"],
    oracle=lambda env: "right" if env.target > env.position else "\ue000 left",
)


class Chinese(Broken):
    """In Chinese; nothing is broken."""

    prompt = PromptTemplate(1, "走。 {task} {format}", "{state} 动作: {actions}.")

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


Dim = broken(
    "Its picture has the levels of a truth.",
    image=lambda env: (Walk.image(env) > 100).astype(np.uint8),
)
Ajar = broken("`close` leaves the episode open.", close=lambda env: None)


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


def _drawing(draw: Any) -> Any:
    return lambda env: (draw(), Walk.image(env))[1]


PythonDraw = broken("It draws from Python's global generator.", image=_drawing(random.random))
NumpyDraw = broken("It draws from numpy's global generator.", image=_drawing(np.random.random))
Setting = broken("It always sets the same variable.", image=_drawing(lambda: os.environ.update(VLGYM_TOY="set")))
Homesick = broken(
    "It behaves otherwise in a forked process.",
    state_text=lambda env: Walk.state_text(env) + ("" if os.getpid() == _PROCESS else " This is not home."),
)
Homeless = broken(
    "It pays otherwise in a forked process where its target lies to the right, as in its second row.",
    act=lambda env, action: replace(Walk.act(env, action), reward=float(os.getpid() != _PROCESS and env.target > 0)),
)
Homebound = broken(
    "It ends at once in a forked process.",
    act=lambda env, action: replace(Walk.act(env, action), terminated=os.getpid() != _PROCESS),
)


OldPrompt = broken(
    "Its prompt is of another version than its spec says.",
    prompt=PromptTemplate(2, "{task} {format}", "{state} Legal actions: {actions}."),
)


class Deaf(Broken):
    """It ignores options that it does not know."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        known = {name: value for name, value in (options or {}).items() if name in self.reset_options}
        return super().reset(seed=seed, options=known)


class Hasty(Broken):
    """It looks at the option `target` too late."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.turn += 1
        return super().reset(seed=seed, options=options)


Credulous = broken(
    "It takes any value of its option `target`.",
    reset_options={"target": ResetOption("where to go", "a cell", lambda env, value: 3)},
)
Secretive = broken(
    "Its card does not name all its options.",
    reset_options={**Walk.reset_options, "whither": whole_number("where to go", -5, 5)},
)


class Backwards(Broken):
    """Its last `level` is the easiest."""

    level_arguments: ClassVar = ({"far": 5}, {"far": 2})
    far = 3

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().start(rng, options)
        self.target = self.far


Rising = broken("Its last `level` is the hardest.", Backwards, level_arguments=({"far": 2}, {"far": 5}))
TooFar = broken(
    "Its last `level` has too few turns.", Backwards, level_arguments=({"far": 2}, {"far": 5, "max_turns": 4})
)
Alike = broken("Its levels are alike.", Backwards, level_arguments=({"far": 2}, {"far": 2}))

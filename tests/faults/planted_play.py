"""Faults of rules, rewards, endings, states and oracles: each is `Lantern` with one thing wrong."""

import datetime
import os
import time
from typing import Any, ClassVar

import numpy as np
from faults.lantern import Lantern, SavedLantern, earning, plant, stepping, telling

from vlgym.types import Outcome


class OracleActsOutside(Lantern):
    def oracle(self) -> str | None:
        return "teleport"

    def match_action(self, wanted: str) -> str | None:
        return wanted if wanted == "teleport" else super().match_action(wanted)

    def act(self, action: str) -> Outcome:
        if action == "teleport":
            self.walker = self.lantern
            return Outcome(1.0, terminated=True)
        return super().act(action)


OracleDraws = plant(oracle=lambda env: env.np_random.random() and Lantern.oracle(env))
OracleNamesNothing = plant(oracle=lambda env: f"go {Lantern.oracle(env)}")
OracleCounts = plant(oracle=lambda env: Lantern.oracle(env) if env.count() % 5 else "up")
ThoughtsMove = plant(think=lambda env, action: f"{setattr(env, 'steps', env.steps + 1)}")
ThoughtsVary = plant(think=lambda env, action: f"I thought {env.count()} times")


class TruncatesEarly(Lantern):
    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        return Outcome(outcome.reward, outcome.terminated, truncated=self.steps >= 15)


BothFlags = stepping(lambda reply, reward, ended, cut, info: (reward, ended, cut or ended, info))


class EndsTooLate(Lantern):
    def _conclude(self, outcome: Outcome, *, last: bool) -> tuple[bool, bool]:
        terminated, truncated = super()._conclude(outcome, last=last)
        late = truncated and self.turn < self.max_turns + 2
        self._ended = terminated or (truncated and not late)
        return terminated, truncated and not late


class GoesOnAfterTheEnd(Lantern):
    def step(self, action: str) -> Any:
        self._ended = False
        return super().step(action)


class TestUnsolvable(Lantern):
    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        if self.seed_split == "test" and self.walker == self.lantern:
            self.walker = (self.inside(self.walker[0] - 1), self.inside(self.walker[1] - 1))
            return Outcome(0.0)
        return outcome


class TestHasOneStart(Lantern):
    def place(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().place(rng, options)
        if self.seed_split == "test":
            self.lantern, self.walker = (0, 0), (4, 4)


class SplitsMix(Lantern):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=None if seed is None else seed % 2**20, options=options)


TestPaysMore = earning(lambda env, reward: reward * (2.0 if env.seed_split == "test" else 1.0))
PaysByTheClock = earning(lambda env, reward: reward * (1.0 - 0.1 * (time.localtime().tm_year % 5)))
PaysNaN = earning(lambda env, reward: reward and float("nan"))


class StateForgetsInfo(SavedLantern):
    def load(self, state: dict[str, Any]) -> None:
        super().load({**state, "slipped": False})


class StateForgetsAfterSixteen(SavedLantern):
    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        if self.steps > 16 or self.turn > 16:
            self.lantern = (0, 0)

    def save(self) -> dict[str, Any]:
        lost = {"lantern": (0, 0)} if self.turn > 16 else {}
        return {**super().save(), **lost}


class StateIsNoJson(SavedLantern):
    def save(self) -> dict[str, Any]:
        return {**super().save(), "seen": {self.walker}}


class StateForgetsTheChance(SavedLantern):
    def place(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().place(rng, options)
        self.chance = np.random.default_rng(int(rng.integers(2**31)))

    def act(self, action: str) -> Outcome:
        return super().act(action if self.chance.random() < 0.7 else "up")


class CopyForgetsTheDraws(Lantern):
    def _parts(self) -> tuple[Any, ...]:
        kind, arguments, attributes, _, state = super()._parts()
        return kind, arguments, attributes, None, state


class PaysLessAfterTwentyFive(Lantern):
    episodes = 0

    def begin(self) -> None:
        self.episodes += 1

    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        return Outcome(outcome.reward * (0.5 if self.episodes > 25 else 1.0), outcome.terminated)


class RemembersTheEpisodeBefore(Lantern):
    old = -1

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.old = getattr(self, "steps", -1)
        super().start(rng, options)

    def extra_info(self) -> dict[str, Any]:
        return {**super().extra_info(), "before": self.old}


class NumbersItsInstances(Lantern):
    made: ClassVar[int] = 0

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        NumbersItsInstances.made += 1
        self.number = NumbersItsInstances.made

    def state_text(self) -> str:
        return f"{super().state_text()} You are walker {self.number}."


class ChanceFromTurnEleven(Lantern):
    def extra_info(self) -> dict[str, Any]:
        noise = float(np.random.default_rng().random()) if self.turn >= 11 else 0.0
        return {**super().extra_info(), "noise": noise}


TellsTheDate = telling(lambda env: f"Today is {datetime.date.today():%d %B %Y}.")
TellsTheUser = telling(lambda env: f"Hello, {os.environ.get('USER', 'you')}.")


class SharesItsWalker(Lantern):
    shared: ClassVar[dict[str, Any]] = {}

    @property
    def steps(self) -> int:
        return self.shared.get("steps", 0)

    @steps.setter
    def steps(self, value: int) -> None:
        self.shared["steps"] = value

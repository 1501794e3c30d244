"""Faults of rules, rewards, endings, states and oracles: each class is `Lantern` with one thing wrong."""

from __future__ import annotations

import datetime
import os
import random
import time
from typing import Any, ClassVar

import numpy as np
from faults.lantern import SIDE, Lantern, SavedLantern

from vlgym.types import Outcome


class OracleMovesTheGoal(Lantern):
    def oracle(self) -> str | None:
        row, column = self.walker
        self.lantern = (row, column + 1) if column + 1 < SIDE else (row, column - 1)
        return super().oracle()


class OracleMovesTheWalker(Lantern):
    def oracle(self) -> str | None:
        if self.distance() > 2:
            self.walker = (self.lantern[0], self.walker[1])
        return super().oracle()


class OracleDraws(Lantern):
    def oracle(self) -> str | None:
        self.np_random.random()
        return super().oracle()


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


class OracleNamesNothing(Lantern):
    def oracle(self) -> str | None:
        return f"go {super().oracle()}"


class OracleCounts(Lantern):
    asked = 0

    def oracle(self) -> str | None:
        self.asked += 1
        return super().oracle() if self.asked % 5 else "up"


class ThoughtsMove(Lantern):
    def think(self, action: str) -> str:
        self.steps += 1
        return super().think(action)


class ThoughtsVary(Lantern):
    thought = 0

    def think(self, action: str) -> str:
        self.thought += 1
        return f"{super().think(action)}, I thought {self.thought} times"


class OracleLoses(Lantern):
    def oracle(self) -> str | None:
        return "up" if self.lantern[0] == SIDE - 1 else super().oracle()


class TruncatesEarly(Lantern):
    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        return Outcome(outcome.reward, outcome.terminated, truncated=self.steps >= 15)


class BothFlags(Lantern):
    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated or terminated, info


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


class GivesUp(Lantern):
    bad = 0

    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        self.bad = self.bad + 1 if info["invalid_action"] else 0
        return observation, reward, terminated or self.bad >= 10, truncated, info


class TestUnsolvable(Lantern):
    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        if self.seed_split == "test" and self.walker == self.lantern:
            self.walker = (self.inside(self.walker[0] - 1), self.inside(self.walker[1] - 1))
            return Outcome(0.0)
        return outcome


class TestTrivial(Lantern):
    def act(self, action: str) -> Outcome:
        if self.seed_split == "test":
            self.walker = self.lantern
            return Outcome(1.0, terminated=True)
        return super().act(action)


class TestHasOneStart(Lantern):
    def place(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().place(rng, options)
        if self.seed_split == "test":
            self.lantern, self.walker = (0, 0), (4, 4)


class TestPaysMore(Lantern):
    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        return Outcome(outcome.reward * (2.0 if self.seed_split == "test" else 1.0), outcome.terminated)


class SplitsMix(Lantern):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=None if seed is None else seed % 2**20, options=options)


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


class StateForgetsTheGoal(SavedLantern):
    def load(self, state: dict[str, Any]) -> None:
        super().load({**state, "lantern": self.lantern})


class StateIsNoJson(SavedLantern):
    def save(self) -> dict[str, Any]:
        return {**super().save(), "seen": {self.walker}}


class StateKeepsThePicture(SavedLantern):
    frame: Any = None

    def begin(self) -> None:
        self.frame = None

    def act(self, action: str) -> Outcome:
        self.frame = None
        return super().act(action)

    def image(self) -> np.ndarray:
        if self.frame is None:
            self.frame = self.draw()
        return self.frame.copy()


class StateForgetsTheChance(SavedLantern):
    def place(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().place(rng, options)
        self.chance = np.random.default_rng(int(rng.integers(2**31)))

    def act(self, action: str) -> Outcome:
        return super().act(action if self.chance.random() < 0.7 else "up")


class CopyForgetsTheDraws(Lantern):
    def _parts(self) -> tuple[Any, ...]:
        kind, arguments, kept, _, state = super()._parts()
        return kind, arguments, kept, None, state


class PaysLessAfterTwentyFive(Lantern):
    episodes = 0

    def begin(self) -> None:
        self.episodes += 1

    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        return Outcome(outcome.reward * (0.5 if self.episodes > 25 else 1.0), outcome.terminated)


class TiresAsAClass(Lantern):
    episodes: ClassVar[int] = 0

    def begin(self) -> None:
        TiresAsAClass.episodes += 1

    def state_text(self) -> str:
        return super().state_text() + (" It is late." if TiresAsAClass.episodes > 30 else "")


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


class PictureNoiseFromTurnEleven(Lantern):
    def image(self) -> np.ndarray:
        canvas = self.draw()
        if self.turn >= 11:
            canvas[0, 0] = np.random.default_rng().integers(256, size=3)
        return canvas


class SeedIsIgnored(Lantern):
    def place(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.lantern, self.walker = (0, 0), (4, 4)


class TellsTheDate(Lantern):
    def state_text(self) -> str:
        return f"{super().state_text()} Today is {datetime.date.today():%d %B %Y}."


class TellsTheHour(Lantern):
    def state_text(self) -> str:
        return f"{super().state_text()} It is {time.localtime().tm_hour} o'clock."


class PaysByTheClock(Lantern):
    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        return Outcome(outcome.reward * (1.0 - 0.1 * (time.localtime().tm_year % 5)), outcome.terminated)


class TellsTheUser(Lantern):
    def task(self) -> str:
        return f"{super().task()} Hello, {os.environ.get('USER', 'you')}."


class DependsOnHashes(Lantern):
    def state_text(self) -> str:
        return f"{super().state_text()} There are {' and '.join({f'{number} walls' for number in range(16)})}."


class SharesItsWalker(Lantern):
    shared: ClassVar[dict[str, Any]] = {}

    @property
    def steps(self) -> int:
        return self.shared.get("steps", 0)

    @steps.setter
    def steps(self, value: int) -> None:
        self.shared["steps"] = value


class DrawsFromRandom(Lantern):
    def place(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().place(rng, options)
        random.random()


class OutOfRange(Lantern):
    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        return Outcome(outcome.reward * (1.5 if self.steps < 6 else 1.0), outcome.terminated)


class PaysNaN(Lantern):
    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        return Outcome(float("nan") if outcome.terminated else 0.0, outcome.terminated)


class AnyFirstStepWins(Lantern):
    def act(self, action: str) -> Outcome:
        self.walker = self.lantern
        return Outcome(1.0, terminated=True)

"""Curricula: the environment and the level of each training episode.

    course = Course("success", ["vlgym/NumberLine-v1"])
    place = course.choose(0)              # of episode 0
    course.note(place, success=True)      # once it has ended

A sampler is a subclass of `Curriculum`. Plugins bring more by the hook `vlgym_curricula`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..env.reset_options import LEVEL
from ..errors import UserError, check_choice
from ..registry import get_registry


class Place(NamedTuple):
    """An environment on one of its levels, 0 the easiest; `None` where it has no levels."""

    env_id: str
    level: int | None


class Curriculum:
    """A sampler: weighs the places at which the next episodes may begin.

    Args:
        places: those of one environment after those of another, the easiest of each first.
        argument: the ARGUMENT of `--curriculum NAME:ARGUMENT`; a sampler without one refuses it.

    Attributes:
        memory: all that it has learnt, JSON-able; checkpoints hold it.
    """

    def __init__(self, places: Sequence[Place], argument: str = "") -> None:
        if argument:
            raise UserError(f"--curriculum: this sampler takes nothing after the colon, but has {argument!r}.")
        self.places = tuple(places)
        self.memory: dict[str, Any] = {}

    def weights(self) -> Sequence[float]:
        """Return a weight of each place, proportional to its probability: >= 0, not all 0."""
        raise NotImplementedError

    def note(self, place: int, success: bool) -> None:
        """Learn that an episode at `places[place]` ended."""

    def note_error(self, place: int, error: float) -> None:
        """Learn the mean absolute advantage (ArCHer: TD error) of an update's turns at a place."""


WINDOW, UP, DOWN = 30, 0.8, 0.3  # episodes that decide, their shares of success to move up or down
EXPLORED = 0.2  # share of the episodes that `learning-progress` spreads evenly
FAST_RATE, SLOW_RATE = 0.1, 0.02  # of the means of success whose difference is the progress
SHARPNESS, STALE = 10.0, 0.1  # `prioritized`: the source's 1 / beta and rho
FORGETS = 0.3  # rate at which a place's error follows


class Fixed(Curriculum):
    """`fixed` plays the highest level of each environment, `fixed:K` level K."""

    def __init__(self, places: Sequence[Place], argument: str = "") -> None:
        super().__init__(places)
        tops = {env_id: level for env_id, level in places if level is not None}
        if argument:
            tops = dict.fromkeys(tops, _read_level(argument, min(tops.values()), f"fixed:{argument}"))
        self.chosen = [level == tops.get(env_id) for env_id, level in places]

    def weights(self) -> Sequence[float]:
        return [float(chosen) for chosen in self.chosen]


class Uniform(Curriculum):
    """All levels of an environment alike, and all environments."""

    def weights(self) -> Sequence[float]:
        ids = [place.env_id for place in self.places]
        return [1 / ids.count(env_id) for env_id in ids]


class Success(Curriculum):
    """One level of each environment: up at `UP` success in `WINDOW` episodes, down at `DOWN`."""

    def __init__(self, places: Sequence[Place], argument: str = "") -> None:
        super().__init__(places, argument)
        first = {place.env_id: at for at, place in reversed(list(enumerate(self.places)))}
        self.memory = {env_id: {"at": at, "seen": []} for env_id, at in first.items()}

    def weights(self) -> Sequence[float]:
        return [float(self.memory[place.env_id]["at"] == at) for at, place in enumerate(self.places)]

    def note(self, place: int, success: bool) -> None:
        env_id = self.places[place].env_id
        here = self.memory[env_id]
        if place != here["at"]:
            return  # it began before the last move
        here["seen"] = [*here["seen"], bool(success)][-WINDOW:]
        share = sum(here["seen"]) / WINDOW
        move = 0 if len(here["seen"]) < WINDOW else (share >= UP) - (share <= DOWN)
        target = place + move
        if move and 0 <= target < len(self.places) and self.places[target].env_id == env_id:
            here.update(at=target, seen=[])


class LearningProgress(Curriculum):
    """In proportion to the change of success: the difference of a fast and a slow running mean.

    Source: Kanitscheider et al. 2021, arXiv 2106.14876, without its reweighting.
    """

    def __init__(self, places: Sequence[Place], argument: str = "") -> None:
        super().__init__(places, argument)
        self.memory = {"fast": [0.0] * len(places), "slow": [0.0] * len(places)}

    def weights(self) -> Sequence[float]:
        progress = [abs(fast - slow) for fast, slow in zip(*self.memory.values(), strict=True)]
        total, count = sum(progress), len(progress)
        shares = [each / total if total else 1 / count for each in progress]
        return [EXPLORED / count + (1 - EXPLORED) * share for share in shares]

    def note(self, place: int, success: bool) -> None:
        for name, rate in (("fast", FAST_RATE), ("slow", SLOW_RATE)):
            self.memory[name][place] += rate * (success - self.memory[name][place])


class Prioritized(Curriculum):
    """Prioritized level replay: by the rank of the critic's error, or places long unseen.

    Source: Jiang et al. 2021, arXiv 2010.03934. Its levels are seeds; here they are places, so an
    error is a running mean over seeds. A place without an error comes first.
    """

    def __init__(self, places: Sequence[Place], argument: str = "") -> None:
        super().__init__(places, argument)
        self.memory = {"error": [None] * len(places), "seen": [0] * len(places), "updates": 0}

    def weights(self) -> Sequence[float]:
        errors, seen, count = self.memory["error"], self.memory["seen"], len(self.places)
        if None in errors:
            return [float(error is None) for error in errors]
        order = sorted(range(count), key=lambda place: -errors[place])
        ranked = [(order.index(place) + 1) ** -SHARPNESS for place in range(count)]
        ages = [max(seen) - update for update in seen]
        stale = [age / sum(ages) if sum(ages) else 1 / count for age in ages]
        pairs = zip(ranked, stale, strict=True)
        return [(1 - STALE) * rank / sum(ranked) + STALE * age for rank, age in pairs]

    def note_error(self, place: int, error: float) -> None:
        old = self.memory["error"][place]
        self.memory["error"][place] = error if old is None else old + FORGETS * (error - old)
        self.memory["updates"] += 1
        self.memory["seen"][place] = self.memory["updates"]


Factory = Callable[[Sequence[Place], str], Curriculum]
CURRICULA: dict[str, Factory] = {
    "fixed": Fixed, "uniform": Uniform, "success": Success, "learning-progress": LearningProgress,
    "prioritized": Prioritized,
}  # fmt: skip


class Course:
    """A sampler at work on some environments.

    A choice is a function of the seed, the episode's number and the sampler's memory. The name is
    `NAME` or `NAME:ARGUMENT` of a sampler, then `@K` where levels above K are left out.

    Raises:
        UserError: there is no such sampler, no environment has levels, or none has level K.
    """

    def __init__(self, name: str, env_ids: Sequence[str], *, seed: int = 0) -> None:
        sampler, _, highest = name.partition("@")
        kind, _, argument = sampler.partition(":")
        self.name, self.seed, self.limit = name, seed, name.removeprefix(sampler)

        # Places: the levels of each environment, up to the limit.
        counts = {env_id: len(get_registry().get(env_id).levels) for env_id in env_ids}
        if not any(counts.values()):
            ids = ", ".join(counts)
            raise UserError(f"--curriculum {name}: {ids} has no levels; see `vlgym list`.")
        if self.limit:
            top = _read_level(highest, max(counts.values()) - 1, name)
            counts = {env_id: min(count, top + 1) for env_id, count in counts.items()}
        levels = {env_id: range(count) or (None,) for env_id, count in counts.items()}
        self.places = [Place(env_id, level) for env_id in levels for level in levels[env_id]]

        # The sampler's own check of its argument comes last.
        factories = get_registry().collect("curricula", CURRICULA)
        check_choice("--curriculum", kind, factories)
        self.sampler = factories[kind](self.places, argument)

    def choose(self, number: int) -> Place:
        """Return the place of an episode."""
        weights = [float(weight) for weight in self.sampler.weights()]
        total, count = sum(weights), len(self.places)
        if len(weights) != count or not (math.isfinite(total) and total > 0 and min(weights) >= 0):
            raise UserError(f"--curriculum {self.name} gave {weights}, no weights of {count} places.")
        draw = np.random.default_rng([self.seed, number])
        return self.places[int(draw.choice(count, p=[weight / total for weight in weights]))]

    def held_out(self, env_id: str, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return an environment's arguments in held-out episodes, on its highest level."""
        top = [place.level for place in self.places if place.env_id == env_id][-1]
        return kwargs if top is None else {**kwargs, LEVEL: top}

    def note(self, place: Place, success: bool) -> None:
        """Tell the sampler that an episode ended."""
        self.sampler.note(self.places.index(place), success)

    def note_errors(self, errors: Sequence[tuple[Place, float]]) -> None:
        """Tell the sampler the absolute advantages of an update's turns."""
        for at, place in enumerate(self.places):
            if own := [abs(error) for where, error in errors if where == place]:
                self.sampler.note_error(at, sum(own) / len(own))


def _read_level(text: str, highest: int, name: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= highest):
        raise UserError(f"--curriculum {name}: {text!r} is not a level from 0 to {highest}.")
    return int(text)

"""The correct environment of the planted faults: walk in the dark to a lantern."""

import sys
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.reset_options import whole_number
from vlgym.env.spec import EnvSpec
from vlgym.types import Outcome

SIDE = 6
STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


class Lantern(VLEnv):
    """Walk over six by six icy cells to a lantern.

    Goal: stand on the lantern's cell.
    Observation: the cells from above; you are white, the lantern is red, and the text has none.
    Actions: `up`, `down`, `left`, `right`. One step in eight slips and goes nowhere.
    Reward: 1 for the step onto the lantern, else 0.
    Endings: terminated on the lantern; truncated after 40 turns.
    References: none.

    Options of `reset`: `lantern`, the number of its cell.
    """

    prompt = PromptTemplate(1, "Walk. {task} {format}", "{state} Legal actions: {actions}.")
    reset_options: ClassVar = {"lantern": whole_number("the lantern's cell", 0, SIDE * SIDE - 1)}

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.place(rng, options)
        self.steps = 0
        self.slipped = False
        self.begin()

    def begin(self) -> None:
        """Faults do here what an episode does at its start."""

    def place(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Put lantern and walker at least three steps apart."""
        while True:
            cells = rng.integers(0, SIDE, size=4)
            self.lantern, self.walker = (int(cells[0]), int(cells[1])), (int(cells[2]), int(cells[3]))
            if "lantern" in options:
                self.lantern = divmod(options["lantern"], SIDE)
            if self.distance() >= 3:
                return

    def distance(self) -> int:
        """Steps to the lantern."""
        return abs(self.lantern[0] - self.walker[0]) + abs(self.lantern[1] - self.walker[1])

    def act(self, action: str) -> Outcome:
        self.steps += 1
        self.slipped = bool(self.np_random.random() < 0.125)
        if not self.slipped:
            row, column = STEPS[action]
            self.walker = (self.inside(self.walker[0] + row), self.inside(self.walker[1] + column))
        won = self.walker == self.lantern
        return Outcome(float(won), terminated=won, feedback="slipped" if self.slipped else "walked")

    def count(self) -> int:
        """Return how often this was called: faults that keep a count call it."""
        self.counted = getattr(self, "counted", 0) + 1
        return self.counted

    def inside(self, place: int) -> int:
        """The nearest row or column there is."""
        return min(max(place, 0), SIDE - 1)

    def image(self) -> np.ndarray:
        return self.draw()

    def draw(self) -> np.ndarray:
        """Walker over lantern over darkness, and a pale bar on top that says which way is up."""
        height, width = self.image_size
        canvas = np.full((height, width, 3), 20, np.uint8)
        canvas[: height // 12] = 150
        tall, wide = (height - height // 12) // SIDE, width // SIDE
        for (row, column), colour in ((self.lantern, (220, 40, 40)), (self.walker, (255, 255, 255))):
            top, left = height // 12 + row * tall, column * wide
            canvas[top : top + tall, left : left + wide] = colour
        return canvas

    def task(self) -> str:
        return "Go to the lantern."

    def state_text(self) -> str:
        return f"You have walked {self.steps} steps."

    def legal_actions(self) -> list[str]:
        return list(STEPS)

    def success(self) -> bool:
        return self.walker == self.lantern

    def oracle(self) -> str | None:
        rows, columns = self.lantern[0] - self.walker[0], self.lantern[1] - self.walker[1]
        if rows:
            return "down" if rows > 0 else "up"
        return "right" if columns > 0 else "left"

    def think(self, action: str) -> str:
        return "the light comes from there"

    def extra_info(self) -> dict[str, Any]:
        return {"steps": self.steps, "distance": self.distance(), "slipped": self.slipped}


class SavedLantern(Lantern):
    def save(self) -> dict[str, Any]:
        return {"lantern": self.lantern, "walker": self.walker, "steps": self.steps, "slipped": self.slipped}

    def load(self, state: dict[str, Any]) -> None:
        self.lantern, self.walker = tuple(state["lantern"]), tuple(state["walker"])
        self.steps, self.slipped = state["steps"], state["slipped"]


def plant(base: type[Lantern] = Lantern, **methods: Any) -> type[Lantern]:
    """Return a class with other methods, which get the environment as their first argument."""
    module = sys._getframe(1).f_globals["__name__"]  # whose source `words` reads
    return type("Planted", (base,), {"__module__": module, **methods})


def earning(pay: Callable[[Any, float], float]) -> type[Lantern]:
    """Return a class with other rewards."""

    class Earning(Lantern):
        def act(self, action: str) -> Outcome:
            outcome = super().act(action)
            return Outcome(pay(self, outcome.reward), outcome.terminated)

    return Earning


def stepping(change: Callable[..., tuple[Any, ...]]) -> type[Lantern]:
    """Return a class whose `step` gives what `change` makes of reply, reward, both flags and info."""

    class Stepping(Lantern):
        def step(self, action: str) -> Any:
            observation, *rest = super().step(action)
            return observation, *change(action, *rest)

    return Stepping


def telling(tell: Callable[[Any], str]) -> type[Lantern]:
    """Return a class that says more about its state."""
    return plant(state_text=lambda env: f"{Lantern.state_text(env)} {tell(env)}")


def lantern_spec(name: str = "Lantern", module: str = "faults.lantern", **changes: Any) -> EnvSpec:
    """The card of `Lantern`, or of a class that changes it."""
    fields: dict[str, Any] = {
        "id": f"vlgym/{name}-v0", "entry_point": f"{module}:{name}",
        "summary": "Walk to the lantern.", "family": "toys", "max_turns": 40,
        "reward_range": (0.0, 1.0), "image_size": (48, 48),
        "success_rule": "You stand on the lantern.", "random_success_below": 0.9,
    }  # fmt: skip
    return EnvSpec(**{**fields, **changes})

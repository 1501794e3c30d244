"""Small games of several agents: one in turn with hidden cards, one with moves at once."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from toys import make_spec

from vlgym.env.prompts import PromptTemplate
from vlgym.env.spec import EnvSpec
from vlgym.games.multi import MultiVLEnv, Round
from vlgym.play.policies import RandomPolicy
from vlgym.types import Reply, Turn


class Nim(MultiVLEnv):
    """Take one or two stones in turn; the last one wins. Each also has a card that does nothing.

    Goal: take the last stone.
    Observation: a bar as long as the pile, a dot for the own card.
    Actions: `one`, `two`.
    Reward: 1 for the last stone, -1 for the other.
    Endings: terminated with the last stone; truncated after 8 turns.
    References: none.
    """

    prompt = PromptTemplate(1, "Nim. {task} {format}", "{state} Legal actions: {actions}.")
    zero_sum: ClassVar = True
    symmetric: ClassVar = True
    hidden_information: ClassVar = True

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.pile = int(rng.integers(4, 11))
        self.cards = [int(card) for card in rng.integers(5, size=2)]
        self.mover = 0
        self.winner: int | None = None

    def movers(self) -> tuple[int, ...]:
        return () if self.winner is not None else (self.mover,)

    def moves(self, seat: int) -> list[str]:
        return ["one", "two"] if self.pile > 1 else ["one"]

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        self.pile -= 1 if moves[self.mover] == "one" else 2
        if self.pile:
            self.mover = 1 - self.mover
            return Round((0.0, 0.0))
        self.winner = self.mover
        return Round((1.0, -1.0) if self.mover == 0 else (-1.0, 1.0), terminated=True)

    def draw(self, seat: int) -> np.ndarray:
        canvas = np.full((*self.image_size, 3), 30, np.uint8)
        canvas[:8, : 2 * self.pile] = 255
        canvas[10:12, 2 * self.cards[seat]] = (0, 255, 0)
        canvas[-1, -1] = 200 if self.mover == seat else 90
        return canvas

    def goal(self, seat: int) -> str:
        return "Take the last stone."

    def tell(self, seat: int) -> str:
        return f"Your card is {self.cards[seat]}."

    def won(self, seat: int) -> bool:
        return self.winner == seat

    def advise(self, seat: int) -> str | None:
        return "two" if self.pile % 3 == 2 else "one"

    def explain(self, seat: int, action: str) -> str:
        return f"{self.pile} stones, so {action}"

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        self.cards[1 - seat] = (self.cards[1 - seat] + int(rng.integers(1, 5))) % 5
        return True

    def mirror(self) -> None:
        self.mover = 1 - self.mover
        self.cards.reverse()


class Meet(MultiVLEnv):
    """Three agents on a ring of six cells move at once and are paid for standing together.

    Goal: stand in one cell.
    Observation: six cells, the own one white.
    Actions: `left`, `right`, `stay`.
    Reward: 1 for each agent where all three stand together.
    Endings: truncated after 8 turns.
    References: none.
    """

    prompt = PromptTemplate(1, "Meet. {task} {format}", "{state} Legal actions: {actions}.")
    seats = 3
    at_once = True

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.rng = rng
        self.places = [int(place) for place in rng.integers(6, size=3)]
        self.met = 0

    def movers(self) -> tuple[int, ...]:
        return (0, 1, 2)

    def moves(self, seat: int) -> list[str]:
        return ["left", "right", "stay"]

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        steps = {"left": -1, "right": 1, "stay": 0}
        self.places = [(place + steps[moves[seat]]) % 6 for seat, place in enumerate(self.places)]
        self.wind = int(self.rng.integers(6))
        together = len(set(self.places)) == 1
        self.met += together
        return Round((float(together),) * 3)

    def draw(self, seat: int) -> np.ndarray:
        canvas = np.full((*self.image_size, 3), 30, np.uint8)
        for other, place in enumerate(self.places):
            canvas[6 * other : 6 * other + 5, 3 * place : 3 * place + 3] = 255 if other == seat else 120
        return canvas

    def goal(self, seat: int) -> str:
        return "Stand together."

    def won(self, seat: int) -> bool:
        return self.met > 0

    def idle(self, seat: int) -> str:
        return "stay"


class Listener(RandomPolicy):
    """Plays at random and keeps what it is asked."""

    name = "listener"

    def __init__(self) -> None:
        self.heard: list[Turn] = []

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        self.heard += turns
        return super().reply(turns)


def spec_of(cls: type[MultiVLEnv], **changes: Any) -> EnvSpec:
    """Return the card of one of these games."""
    return make_spec(
        f"vlgym/{cls.__name__}-v0", f"toy_games:{cls.__name__}",
        **{"reward_range": (-1.0, 1.0), "skills": ("several agents",), "oracle_success": 0.5, **changes},
    )  # fmt: skip


NIM, MEET = spec_of(Nim), spec_of(Meet, oracle="none")

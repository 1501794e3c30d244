"""SpielGame: a game in turn on OpenSpiel's rules. A subclass names the actions, draws and tells."""

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pyspiel

from vlgym.games.multi import Round

from .base import PaintedGame


class SpielGame(PaintedGame):
    """A game in turn whose rules are OpenSpiel's.

    Attributes:
        state: OpenSpiel's state, never at a chance node.
        first: the seat of OpenSpiel's player 0: seat 0, or the last one, in reverse order.
        last: seat and action of the last move.
    """

    spiel: str = ""  # OpenSpiel's name of the game, with parameters
    opening: ClassVar[int] = 0  # random moves before the first one, an even number
    marks: ClassVar[Sequence[str]] = ()  # names of the pieces of OpenSpiel's players 0 and 1
    symmetric: ClassVar[bool] = True

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Begin at OpenSpiel's first state that is no chance node."""
        self.chance_rng = rng
        self.first = 0
        self.last: tuple[int, str] | None = None
        self.state = load_game(self.spiel).new_initial_state()
        self.roll()
        self.draw_opening(rng)

    def player_of(self, seat: int) -> int:
        """Return OpenSpiel's number of the player at a seat, and the other way round."""
        return abs(self.first - seat)

    def movers(self) -> tuple[int, ...]:
        return () if self.state.is_terminal() else (self.player_of(self.state.current_player()),)

    def name_action(self, action: int) -> str:
        """Return the name of an action of the player who moves."""
        raise NotImplementedError

    def moves(self, seat: int) -> list[str]:
        return [self.name_action(action) for action in self.state.legal_actions()]

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        """Execute the action, then chance; pay what OpenSpiel's returns have grown by."""
        ((seat, name),) = moves.items()
        legal = self.state.legal_actions()
        action = next(action for action in legal if self.name_action(action) == name)
        before = self.state.returns()
        self.last = (seat, name)
        self.state.apply_action(action)
        self.roll()
        grown = [after - old for after, old in zip(self.state.returns(), before, strict=True)]
        rewards = tuple(grown[self.player_of(each)] for each in range(self.seats))
        return Round(rewards, self.state.is_terminal())

    def describe_board(self, rows: Sequence[str], symbols: str) -> str:
        """Return a board in words, from its rows and the symbols of the players' pieces."""
        pieces = ", ".join(map(" ".join, zip(symbols, self.marks, strict=True)))
        last = f", last move {self.last[1]}" if self.last else ""
        return "\n".join([f"the board ({pieces}, . empty){last}", *rows])

    def draw_opening(self, rng: np.random.Generator) -> None:
        """Make `opening` random moves that lead to a board of the episode's split, by its hash."""
        while self.opening:
            self.state = load_game(self.spiel).new_initial_state()
            while not self.state.is_terminal() and self.state.move_number() < self.opening:
                self.state.apply_action(int(rng.choice(self.state.legal_actions())))
            split = {0: "test", 1: "val"}.get(zlib.crc32(str(self.state).encode()) % 10, "train")
            if not self.state.is_terminal() and split == (self.seed_split or "train"):
                return

    def roll(self) -> None:
        """Let chance act until a player moves."""
        while self.state.is_chance_node():
            outcomes, shares = zip(*self.state.chance_outcomes(), strict=True)
            chances = np.array(shares) / sum(shares)
            self.state.apply_action(int(self.chance_rng.choice(outcomes, p=chances)))

    def tell(self, seat: int) -> str:
        return f"You play {self.marks[self.player_of(seat)]}. " if self.marks else ""

    def won(self, seat: int) -> bool:
        return self.state.is_terminal() and self.state.returns()[self.player_of(seat)] > 0

    def mirror(self) -> None:
        self.first = self.seats - 1 - self.first


class SearchedGame(SpielGame):
    """A game without chance whose players search, with draws from the episode's seed.

    Its `opening` belongs to one split by its hash, so no game of one split opens as one of another.
    """

    zero_sum: ClassVar[bool] = True
    strong: ClassVar[int]  # simulations of the tree search for a move of the oracle
    modest: ClassVar[int]  # and for one of the opponent `search`

    def draw_opening(self, rng: np.random.Generator) -> None:
        self.salt = int(rng.integers(2**31))
        super().draw_opening(rng)

    def advise(self, seat: int) -> str | None:
        return self.name_action(search(self.state, self.strong, self.salt))

    def search(self, seat: int) -> str | None:
        return self.name_action(search(self.state, self.modest, self.salt))

    def equals(self, seat: int) -> list[str]:
        """Return the oracle's moves with four other seeds."""
        salts = range(self.salt + 1, self.salt + 5)
        return [self.name_action(search(self.state, self.strong, salt)) for salt in salts]

    def explain(self, seat: int, action: str) -> str:
        view = self.describe_view(seat).replace("\n", " / ")
        return f"{view}; {action} wins most of the games that I played on in my head"


@lru_cache(maxsize=32)
def load_game(name: str) -> Any:
    return pyspiel.load_game(name)


def search(state: Any, simulations: int, salt: int) -> int:
    """Return the action of OpenSpiel's Monte Carlo tree search, which state and salt decide."""
    seed = zlib.crc32(repr((salt, state.history())).encode()) % 2**31
    evaluator = pyspiel.RandomRolloutEvaluator(1, seed)
    bot = pyspiel.MCTSBot(state.get_game(), evaluator, 1.5, simulations, 100, True, seed, False)
    return int(bot.step(state))


def replay(game: str, history: Sequence[int]) -> Any | None:
    """Return the state after these actions; `None` where one of them is not legal."""
    state = load_game(game).new_initial_state()
    for action in history:
        if state.is_terminal() or action not in state.legal_actions():
            return None
        state.apply_action(action)
    return state

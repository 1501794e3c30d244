"""The prediction of another player's next move."""

from __future__ import annotations

from typing import Any

import numpy as np

import vlgym
from vlgym.env import VLEnv
from vlgym.errors import UserError
from vlgym.types import Image, Outcome

from ..base import game_prompt

DEEPEST = 12  # the rounds before the question are fewer


class NextMove(VLEnv):
    """You look at a game from one seat and say what another player does next.

    Goal: predict the next move of another player, who is a strong one.
    Observation: the picture of your seat, as in the game. The text has the rules of the game, the
        game's words to your seat, who is meant, and the moves that this player may choose from.
    Actions: these moves.
    Reward: 1 for a move that the player makes, else 0. Where it chooses by lot or among equals, each of
        these is right.
    Endings: terminated by the answer, readable or not.
    Splits: train, val and test differ by seed: the game, the moves before the question, the seats.
    Oracle: exact: it asks the player.
    References: the question follows the next-action prediction of Xu et al., VS-Bench, arXiv
        2506.02387, 2025; games, drawings, texts and players are this package's. Before the question
        both play for 0 to 11 rounds, half of the moves at random, the others as the game's `search`.

    Args:
        game: id of a game of several agents; by default Battleship: where does the other shoot?
    """

    prompt = game_prompt("You are watching a game.")

    def __init__(self, game: str = "vlgym/Battleship-v0", **kwargs: Any) -> None:
        self.game = game
        super().__init__(**kwargs)
        if not isinstance(game, str) or game == "vlgym/NextMove-v0":
            need = "must be the id of a game of several agents, such as vlgym/KuhnPoker-v0"
            raise UserError(f"game={game!r:.60} {need}.")
        self._table = vlgym.open_table(game, image_size=self.image_size)
        self._seats = (0, 1)
        self._answer = ""
        self._right: set[str] = set()
        self._prediction: str | None = None

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.draw_position(rng)
        other = self._seats[1]
        self._answer = self._table.game.advise(other) or self._choices()[0]
        self._right = {self._answer, *getattr(self._table.game, "equals", lambda seat: ())(other)}

    def draw_position(self, rng: np.random.Generator) -> None:
        """Play up to the question, and draw who looks and who is meant."""
        table, rounds = self._table, int(rng.integers(DEEPEST))
        table.remembers = set()
        table.reset(seed=int(rng.integers(2**31)))
        while rounds:
            table.step({seat: table.game.parser.format([self._move(seat, rng)]) for seat in table.movers})
            rounds -= 1
            if table.over:  # again, but shorter: every game has a first move
                table.reset(seed=int(rng.integers(2**31)))
                rounds = int(rng.integers(rounds + 1))
        other = int(rng.choice(table.movers))
        me = int(rng.choice([seat for seat in range(table.game.seats) if seat != other]))
        self._seats, self._prediction = (me, other), None

    def _move(self, seat: int, rng: np.random.Generator) -> str:
        game = self._table.game
        legal = game.moves(seat)
        action = game.search(seat) if rng.random() < 0.5 else None
        return action if action is not None else legal[int(rng.integers(len(legal)))]

    def _choices(self) -> list[str]:
        """Return the moves of the other, as far as this seat may know them."""
        game, (_, other) = self._table.game, self._seats
        return list(getattr(game, "public_moves", game.moves)(other))

    def act(self, action: str) -> Outcome:
        self._prediction = action
        right = self.success()
        return Outcome(float(right), terminated=True, feedback="right" if right else "wrong")

    def image(self) -> Image:
        return self._table.game.draw(self._seats[0])

    def task(self) -> str:
        two = self._table.game.seats == 2
        who = "the other player" if two else f"player {self._seats[1] + 1}"
        act = f"Do not move yourself: say what {who} does next. All players play well."
        return f"{self._rules()} {act}"

    def _rules(self) -> str:
        me = self._seats[0]
        rules = f"These are the rules as a player is told them: {self._table.game.goal(me)}"
        return f"{rules} You look from the seat of player {me + 1}."

    def state_text(self) -> str:
        return self._table.game.tell(self._seats[0])

    def legal_actions(self) -> list[str]:
        return [] if self._prediction is not None else self._choices()

    def oracle(self) -> str | None:
        return self._answer

    def success(self) -> bool:
        return self._prediction in self._right

    def extra_info(self) -> dict[str, Any]:
        me, other = self._seats
        return {"seat": me, "other": other, "answer": self._answer, "given": self._prediction}

    def close(self) -> None:
        self._table.game.close()
        super().close()

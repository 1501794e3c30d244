"""Questions about a position of a game: another player's next move, an element of the picture."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import vlgym
from vlgym.env import VLEnv
from vlgym.errors import UserError, check_choice
from vlgym.types import Image, Outcome

from .base import game_prompt
from .hanabi import COLOUR_NAMES
from .walkers import Cell

DEEPEST = 12  # the rounds before the question are fewer


class NextMove(VLEnv):
    """You look at a game from one seat and say what another player does next.

    Goal: predict the next move of another player, who is a strong one.
    Observation: the picture of your seat, as in the game. The text has the rules of the game, the
        game's words to your seat, who is meant, and the moves that this player may choose from.
    Actions: these moves.
    Reward: 1 for a move that the player makes, else 0. Of equal moves each is right.
    Endings: terminated by the answer, readable or not.
    Splits: train, val and test differ by seed: the game, the moves before the question, the seats.
    Oracle: exact: it asks the player.
    References: the next-action prediction of Xu et al., VS-Bench, arXiv 2506.02387, 2025. Before
        the question both play for 0 to 11 rounds, half of the moves at random, half by `search`.

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
        self._answer, self._right = "", set[str]()
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


QUESTION_TRIES = 12  # positions that are drawn until one has an element with the drawn answer
Questions = Iterator[tuple[str, str]]  # about a position, each with its answer
QUARTERS = ("top left", "top right", "bottom left", "bottom right")


def _squares(game: Any, me: int, *things: tuple[str, Cell]) -> Questions:
    """Ask what lies on each square of a board; a square with two things is left out."""
    every = (("you", game.places[me]), ("the other", game.places[1 - me]), *things)
    for row, column in game.cells():
        here = [name for name, place in every if place == (row, column)]
        if len(here) < 2:
            where = f"row {row + 1} from the top and column {column + 1} from the left"
            yield f"What is on the square in {where}?", here[0] if here else "nothing"


def _coins(game: Any, me: int) -> Questions:
    return _squares(game, me, (("red coin", "blue coin")[game.drawn], game.coin))


def _hunt(game: Any, me: int) -> Questions:
    return _squares(game, me, *(("apple", apple) for apple in game.apples), ("monster", game.monster))


def _battle(game: Any, me: int) -> Questions:
    return _squares(game, me, *zip(("red block", "blue block"), game.blocks, strict=True))


def _breakthrough(game: Any, me: int) -> Questions:
    for row, line in enumerate(str(game.state).splitlines()[:6]):
        for column, piece in enumerate(line[1:7]):
            answer = {"b": "a black piece", "w": "a white piece"}.get(piece, "nothing")
            yield f"What is on {'abcdef'[column]}{6 - row}?", answer


def _hanabi(game: Any, me: int) -> Questions:
    for place, slot in enumerate(game.view(me).others[0]):
        yield f"Which colour has the other's card {place + 1} from the left?", COLOUR_NAMES[slot.card[0]]


def _kuhn(game: Any, me: int) -> Questions:
    yield "Which card do you hold?", game.rank(game.card_of(me))


def _kitchen(game: Any, me: int) -> Questions:
    yield "Which way do you look?", game.kitchen.facing[me]
    yield "Which way does the other cook look?", game.kitchen.facing[1 - me]


def _quarters(where: str, margin: float, things: Iterable[tuple[str, Any]]) -> Questions:
    """Ask for the quarter of each thing, by its way from the middle; not on the lines between."""
    for name, (across, down) in things:
        if min(abs(across), abs(down)) > margin:
            yield f"In which quarter of {where} is {name}?", QUARTERS[2 * (down > 0) + (across > 0)]


def _knights(game: Any, me: int) -> Questions:
    things = dict(zip(("the archer", "the knight"), game.bodies, strict=True))
    if game.engine.zombie_list:
        things["the lowest zombie"] = max(game.engine.zombie_list, key=lambda zombie: zombie.rect.centery)
    places = [(name, np.subtract(thing.rect.center, (640, 360))) for name, thing in things.items()]
    return _quarters("the ground", 25, places)


def _tag(game: Any, me: int) -> Questions:
    agents = zip(("chaser 1", "chaser 2", "the runner"), game.engine.world.agents, strict=True)
    return _quarters("the white field", 0.08, [(name, body.state.p_pos * (1, -1)) for name, body in agents])


def _pong(game: Any, me: int) -> Questions:
    return _quarters("the field", 4, [("the ball (the bright one)", game.ball)])


# Id of a game: the answers, and the questions about a position.
ASKED: dict[str, tuple[tuple[str, ...], Callable[[Any, int], Questions]]] = {
    "vlgym/Hanabi-v0": (tuple(COLOUR_NAMES.values()), _hanabi),
    "vlgym/KitchenPair-v0": (("up", "down", "left", "right"), _kitchen),
    "vlgym/KnightsArchersZombies-v0": (QUARTERS, _knights),
    "vlgym/Breakthrough-v0": (("a black piece", "a white piece", "nothing"), _breakthrough),
    "vlgym/KuhnPoker-v0": (("J", "Q", "K"), _kuhn),
    "vlgym/CoinGame-v0": (("you", "the other", "red coin", "blue coin", "nothing"), _coins),
    "vlgym/MonsterHunt-v0": (("you", "the other", "apple", "monster", "nothing"), _hunt),
    "vlgym/BattleOfTheColors-v0": (("you", "the other", "red block", "blue block", "nothing"), _battle),
    "vlgym/MPETag-v0": (QUARTERS, _tag),
    "vlgym/Pong-v0": (QUARTERS, _pong),
}


class NameElement(NextMove):
    """You look at a game from one seat and name one element of its picture.

    Goal: say what is on a square, which card is yours, where one looks, or where a thing is.
    Observation: the picture of your seat, as in the game. The text has the rules of the game, the
        game's words to your seat, the question, and the answers to choose from.
    Actions: these answers.
    Reward: 1 for the right answer, else 0.
    Endings: terminated by the answer, readable or not.
    Splits: train, val and test differ by seed: the moves before, the seat, the question.
    Oracle: exact: it knows the state.
    References: the element recognition of Xu et al., VS-Bench, arXiv 2506.02387, 2025. The answer
        is drawn first, each with the same chance, and then a position that has it (in 12 tries),
        after 0 to 11 rounds as in `vlgym/NextMove-v0`.

    Args:
        game: id of a game of several agents that VS-Bench has, too.
    """

    def __init__(self, game: str = "vlgym/MonsterHunt-v0", **kwargs: Any) -> None:
        check_choice("game", game, tuple(ASKED))
        super().__init__(game, **kwargs)
        self._question = ""

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        answers, ask = ASKED[self.game]
        wanted = answers[int(rng.integers(len(answers)))]
        for _ in range(QUESTION_TRIES):
            self.draw_position(rng)
            every = list(ask(self._table.game, self._seats[0]))
            fitting = [each for each in every if each[1] == wanted] or every
            if fitting:
                self._question, self._answer = fitting[int(rng.integers(len(fitting)))]
                self._right = {self._answer}
                if self._answer == wanted:
                    return

    def _choices(self) -> list[str]:
        return list(ASKED[self.game][0])

    def task(self) -> str:
        return f"{self._rules()} Do not move: answer the question about the picture."

    def state_text(self) -> str:
        return f"{super().state_text()}{self._question} "

"""Every check of the kit for games of several agents finds the fault that is planted here for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
from toy_games import MEET, NIM, Meet, Nim
from toys import installed

from vlgym.env.spec import EnvSpec
from vlgym.errors import UserError
from vlgym.games.multi import Round
from vlgym.testing import CHECKS, GAME_CHECKS, GameConformance, certify, checks_for


class Stuck(Nim):
    """Nobody moves, though the game is not over."""

    def movers(self) -> tuple[int, ...]:
        return () if self.pile < 4 else super().movers()


class TwiceListed(Nim):
    """A legal action is listed twice."""

    def moves(self, seat: int) -> list[str]:
        return ["one", "two", "one"] if self.pile > 1 else ["one"]


class BadAdvice(Nim):
    """The oracle names what is not legal."""

    def advise(self, seat: int) -> str | None:
        return "three"


class Fickle(Nim):
    """The oracle says two things."""

    asked = 0

    def advise(self, seat: int) -> str | None:
        self.asked += 1
        return "one" if self.asked % 2 or self.pile == 1 else "two"


class Peeked(Nim):
    """Asking for the legal actions moves something."""

    def moves(self, seat: int) -> list[str]:
        self.cards[seat] = (self.cards[seat] + 1) % 7
        return super().moves(seat)


class Unpaid(Nim):
    """A round pays one seat only."""

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        done = super().make_moves(moves)
        return Round(done.rewards[:1] if done.terminated else done.rewards, done.terminated)


class Generous(Nim):
    """Both are paid for the last stone."""

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        done = super().make_moves(moves)
        return Round((1.0, 1.0), True) if done.terminated else done


class ShowsHand(Nim):
    """The other's card is drawn."""

    def draw(self, seat: int) -> np.ndarray:
        canvas = super().draw(seat)
        canvas[14:16, 2 * self.cards[1 - seat]] = 128
        return canvas


class TellsHand(Nim):
    """The other's card is told."""

    def tell(self, seat: int) -> str:
        return f"{super().tell(seat)} The other has {self.cards[1 - seat]}."


class ListsHand(Nim):
    """The other's card decides in which order the actions are listed."""

    def moves(self, seat: int) -> list[str]:
        return super().moves(seat)[:: -1 if self.cards[1 - seat] > 2 else 1]


class ScoresHand(Nim):
    """The score is the other's card."""

    def points(self, seat: int) -> float | None:
        return float(self.cards[1 - seat])


class LazyRedeal(Nim):
    """`redeal` changes nothing, and says that it did."""

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        return True


class NoRedeal(Nim):
    """`redeal` never changes anything."""

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        return False


class FavoursFirst(Nim):
    """Seat 1 may never take two."""

    def moves(self, seat: int) -> list[str]:
        return ["one"] if seat == 1 else super().moves(seat)


class PaysFirst(Nim):
    """Seat 0 earns double."""

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        done = super().make_moves(moves)
        return Round((2 * done.rewards[0], done.rewards[1]), done.terminated)


class ActsWhenRead(Meet):
    """A move is made when its reply is read."""

    def match_move(self, wanted: str, seat: int) -> str | None:
        action = super().match_move(wanted, seat)
        if action == "left":
            self.places[seat] = (self.places[seat] - 1) % 6
        return action


class ByOrder(Meet):
    """The seat whose move arrives first is paid."""

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        super().make_moves(moves)
        first = next(iter(moves))
        return Round(tuple(float(seat == first) for seat in range(3)))


class InTurn(Nim):
    """Its seats move in turn, and it says that they move at once."""

    at_once = True


class NotIdle(Meet):
    """The idle action is not legal."""

    def idle(self, seat: int) -> str:
        return "sleep"


FAULTS: list[tuple[str, type[Any], str]] = [
    ("seats", Stuck, "the game is not over, and the seats that move are ()"),
    ("seats", TwiceListed, "a legal action of seat 0 is listed twice"),
    ("seats", BadAdvice, "the oracle of seat 0 names 'three', not legal"),
    ("seats", Fickle, "the oracle of seat 0 says two things"),
    ("seats", Peeked, "asking what the seats may do changes what they see"),
    ("seats", Unpaid, "make_moves() returned 1 rewards for 2 seats"),
    ("seats", NotIdle, "the idle action 'sleep' of seat 0 is not legal"),
    ("zero_sum", Generous, "which does not add up to 0"),
    ("hidden", ShowsHand, "the picture of seat"),
    ("hidden", TellsHand, "the text of seat"),
    ("hidden", ListsHand, "the text of seat"),
    ("hidden", ScoresHand, "the info of seat"),
    ("hidden", LazyRedeal, "no seat sees it"),
    ("hidden", NoRedeal, "nothing that is hidden could be changed"),
    ("at_once", ActsWhenRead, "a seat's move shows before all have moved"),
    ("at_once", ByOrder, "the order in which moves arrive matters"),
    ("at_once", InTurn, "declared at_once, and only the seats (0,) move"),
    ("symmetry", FavoursFirst, "mirrored, a seat has another text"),
    ("symmetry", PaysFirst, "mirrored, a round that pays"),
]


def card_of(cls: type[Any]) -> EnvSpec:
    fields = {**NIM.to_dict(), "id": f"vlgym/{cls.__name__}-v0", "entry_point": f"{__name__}:{cls.__name__}"}
    return EnvSpec.from_dict(fields)


@pytest.mark.parametrize(("check", "cls", "evidence"), FAULTS, ids=[f"{row[0]}-{row[1].__name__}" for row in FAULTS])
def test_a_planted_fault_is_found(check: str, cls: type[Any], evidence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlgym.registry.making.load_class", lambda spec: cls)
    with installed(card_of(cls)):
        result = certify(f"vlgym/{cls.__name__}-v0", only=[check]).results[0]
    assert not result.passed
    assert evidence in result.evidence


@pytest.mark.parametrize("spec", [NIM, MEET], ids=lambda spec: spec.title)
def test_sound_games_have_every_property_of_games(spec: EnvSpec) -> None:
    results = certify(spec.id, only=GAME_CHECKS).results
    assert checks_for(spec.id) == [name for name in (*CHECKS, *GAME_CHECKS) if name != "levels"]
    assert [(result.name, result.passed) for result in results] == [(name, True) for name in GAME_CHECKS]


def test_every_check_of_games_has_a_fault() -> None:
    assert {row[0] for row in FAULTS} == set(GAME_CHECKS)


def test_a_game_of_one_agent_has_none_of_these_properties() -> None:
    assert checks_for("vlgym/Walk-v0") == [name for name in CHECKS if name != "levels"]
    result = certify("vlgym/Walk-v0", only=["seats"]).results[0]
    assert not result.passed
    assert "is a game of one agent" in result.evidence
    with pytest.raises(UserError, match=r"zero_sun.*Nearest: zero_sum"):
        certify("vlgym/Walk-v0", only=["zero_sun"])


def test_the_pytest_class_for_games_runs_all_of_them() -> None:
    class Request:
        fixturenames: ClassVar = ["conformance_id", "conformance_check"]
        asked: ClassVar[dict[str, Any]] = {}

        class config:
            class pluginmanager:
                hasplugin = staticmethod(lambda name: False)

        def parametrize(self, name: str, values: Any) -> None:
            self.asked[name] = values

    class Mine(GameConformance):
        env_id = "vlgym/Nim-v0"

    Mine().pytest_generate_tests(Request())
    assert Request.asked["conformance_check"] == [*CHECKS, *GAME_CHECKS]

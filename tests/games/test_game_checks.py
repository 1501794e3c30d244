"""Every check of the kit for games of several agents finds its planted fault."""

from collections.abc import Callable
from typing import Any

import pytest
from toy_games import MEET, NIM, Meet, Nim
from toys import installed

from vlgym.env.spec import EnvSpec
from vlgym.errors import UserError
from vlgym.games.multi import MultiVLEnv, Round
from vlgym.testing import CHECKS, GAME_CHECKS, GameConformance, certify, checks_for

WALK = "vlgym/Walk-v0"


def moves(choose: Callable[[Any, int, list[str]], list[str]]) -> dict[str, Any]:
    """Return `moves` of Nim with its list changed."""
    return {"moves": lambda game, seat: choose(game, seat, Nim.moves(game, seat))}


def advise_in_turns(game: Any, seat: int) -> str:
    game.calls = getattr(game, "calls", 0) + 1
    return "one" if game.calls % 2 or game.pile == 1 else "two"


def change_when_asked(game: Any, seat: int) -> str | None:
    game.cards[seat] = (game.cards[seat] + 1) % 7
    return None


def show_hand(game: Any, seat: int) -> Any:
    canvas = Nim.draw(game, seat)
    canvas[14:16, 2 * game.cards[1 - seat]] = 128
    return canvas


def move_when_read(game: Any, wanted: str, seat: int) -> str | None:
    action = Meet.match_move(game, wanted, seat)
    if action == "left":
        game.places[seat] = (game.places[seat] - 1) % 6
    return action


def pay(change: Callable[[Round], Round]) -> dict[str, Any]:
    """Return `make_moves` of Nim with its round changed."""
    return {"make_moves": lambda game, moves: change(Nim.make_moves(game, moves))}


def pay_the_first(game: Any, moves: Any) -> Round:
    Meet.make_moves(game, moves)
    return Round(tuple(float(seat == next(iter(moves))) for seat in range(3)))


FAULTS: list[tuple[str, type[MultiVLEnv], dict[str, Any], str]] = [
    ("seats", Nim, {"movers": lambda self: () if self.pile < 4 else Nim.movers(self)},
     "the game is not over, and the seats that move are ()"),
    ("seats", Nim, moves(lambda game, seat, legal: [*legal, "one"]), "a legal action of seat 0 is listed twice"),
    ("seats", Nim, {"advise": lambda self, seat: "three"}, "the oracle of seat 0 names 'three'"),
    ("seats", Nim, {"advise": advise_in_turns}, "the oracle of seat 0 says two things"),
    ("seats", Nim, {"idle": change_when_asked}, "asking what the seats may do changes"),
    ("seats", Nim, pay(lambda done: Round(done.rewards[: 2 - done.terminated], done.terminated)),
     "make_moves() returned 1 rewards for 2 seats"),
    ("seats", Meet, {"idle": lambda self, seat: "sleep"}, "the idle action 'sleep' of seat 0"),
    ("zero_sum", Nim, pay(lambda done: Round((1.0, 1.0), True) if done.terminated else done),
     "which does not add up to 0"),
    ("hidden", Nim, {"draw": show_hand}, "the picture of seat"),
    ("hidden", Nim, {"tell": lambda self, seat: f"{Nim.tell(self, seat)} Other: {self.cards[1 - seat]}."},
     "the text of seat"),
    ("hidden", Nim, moves(lambda game, seat, legal: legal[:: -1 if game.cards[1 - seat] > 2 else 1]),
     "the text of seat"),
    ("hidden", Nim, {"points": lambda self, seat: float(self.cards[1 - seat])}, "the info of seat"),
    ("hidden", Nim, {"redeal": lambda self, seat, rng: True}, "no seat sees it"),
    ("hidden", Nim, {"redeal": lambda self, seat, rng: False}, "nothing that is hidden"),
    ("at_once", Meet, {"match_move": move_when_read}, "a seat's move shows before all have moved"),
    ("at_once", Meet, {"make_moves": pay_the_first}, "the order in which moves arrive matters"),
    ("at_once", Nim, {"at_once": True}, "declared at_once, and only the seats (0,) move"),
    ("symmetry", Nim, moves(lambda game, seat, legal: ["one"] if seat == 1 else legal),
     "mirrored, a seat has another text"),
    ("symmetry", Nim, pay(lambda done: Round((2 * done.rewards[0], done.rewards[1]), done.terminated)),
     "mirrored, a round that pays"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "base", "methods", "evidence"), FAULTS, ids=[row[3] for row in FAULTS])
def test_a_planted_fault_is_found(check, base, methods, evidence, monkeypatch):
    monkeypatch.setattr("vlgym.registry.making.load_class", lambda spec: type("Faulty", (base,), methods))
    with installed(EnvSpec.from_dict({**NIM.to_dict(), "id": "vlgym/Faulty-v0"})):
        result = certify("vlgym/Faulty-v0", only=[check]).results[0]
    assert not result.passed
    assert evidence in result.evidence


@pytest.mark.parametrize("spec", [NIM, MEET], ids=lambda spec: spec.title)
def test_sound_games_have_every_property_of_games(spec: EnvSpec) -> None:
    results = certify(spec.id, only=GAME_CHECKS).results
    assert checks_for(spec.id) == [name for name in (*CHECKS, *GAME_CHECKS) if name != "levels"]
    assert [(result.name, result.passed) for result in results] == [(name, True) for name in GAME_CHECKS]
    assert {row[0] for row in FAULTS} == set(GAME_CHECKS)


def test_a_game_of_one_agent_has_none_of_these_properties() -> None:
    assert checks_for(WALK) == [name for name in CHECKS if name != "levels"]
    result = certify(WALK, only=["seats"]).results[0]
    assert not result.passed
    assert "is a game of one agent" in result.evidence
    with pytest.raises(UserError, match=r"zero_sun.*Nearest: zero_sum"):
        certify(WALK, only=["zero_sun"])


def test_the_pytest_class_for_games_runs_all_of_them() -> None:
    assert GameConformance.checks == (*CHECKS, *GAME_CHECKS)

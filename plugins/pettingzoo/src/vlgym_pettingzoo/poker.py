"""Kuhn poker and Leduc hold'em: matches of several hands.

Near-equilibrium play is a table that OpenSpiel's CFR+ made (`pyspiel.CFRPlusSolver`, 2,000
iterations for Kuhn and 1,000 for Leduc, the average policy rounded to four digits).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, ClassVar

import numpy as np
import pyspiel

from vlgym.errors import check_number
from vlgym.games.multi import Round
from vlgym.sight.blind import BlindPlayer

from .base import BLUE, GREEN, GREY, INK, RED, WHITE, Canvas, draw_card, game_prompt
from .spiel import SpielGame, load_game, replay


@lru_cache(maxsize=4)
def read_table(game: str) -> dict[str, dict[int, float]]:
    """Return information state -> action -> probability."""
    path = files("vlgym_pettingzoo").joinpath("tables", f"{game}.json")
    table = json.loads(path.read_text(encoding="utf-8"))
    return {state: {int(each): share for each, share in row.items()} for state, row in table.items()}


def find_shares(state: Any) -> dict[int, float]:
    """Return the probability of each legal action of the player who moves."""
    row = read_table(state.get_game().get_type().short_name)[state.information_state_string()]
    return {action: row.get(action, 0.0) for action in state.legal_actions()}


class Bold(BlindPlayer):
    """Raises, bets or calls, and never folds; it wins more matches than random play."""

    name = "raises or calls"

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        return next(action for action in ("raise", "bet", "call", *legal) if action in legal)


RARE = 0.02  # shares below this count as 0: CFR+ leaves traces of bad actions
RANKS = "JQK"
FELT = (214, 232, 220)


@dataclass
class LastHand:
    """End of a hand: the card of each seat, what each won, and whether the cards were shown."""

    cards: list[int]
    won: list[int]
    shown: bool


class PokerMatch(SpielGame):
    """A match of some hands; the first player changes from hand to hand."""

    zero_sum: ClassVar[bool] = True
    hidden_information: ClassVar[bool] = True
    ground = FELT

    def __init__(self, *, hands: int = 10, **kwargs: Any) -> None:
        check_number("hands", hands, 1, 100)
        self.hands = hands
        super().__init__(**kwargs)

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.chance_rng = rng
        self.noise = int(rng.integers(2**31))
        self.base, self.hand, self.chips = 0, 0, [0, 0]  # `hand`: number of hands that are over
        self.before: LastHand | None = None
        self.last: tuple[int, str] | None = None
        self._begin_hand()

    def _begin_hand(self) -> None:
        self.first = (self.base + self.hand) % 2
        self.state = load_game(self.spiel).new_initial_state()
        self.bids: list[tuple[int, str, int]] = []  # seat, action, number of dealt cards
        self.roll()

    @property
    def dealt(self) -> list[int]:
        """OpenSpiel's cards of this hand: of player 0, of player 1, then the public one."""
        return [move.action for move in self.state.full_history() if move.player == pyspiel.PlayerId.CHANCE]

    def card_of(self, seat: int) -> int:
        return int(self.state.history()[self.player_of(seat)])

    def rank(self, card: int) -> str:
        """Return the letter of a card."""
        raise NotImplementedError

    def movers(self) -> tuple[int, ...]:
        return () if self.hand >= self.hands else super().movers()

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        ((seat, word),) = moves.items()
        dealt = len(self.dealt)
        done = super().make_moves(moves)
        self.bids.append((seat, word, dealt))
        if not done.terminated:
            return done

        # The hand is over; the match goes on with the next one.
        won = [int(reward) for reward in done.rewards]
        self.chips = [total + more for total, more in zip(self.chips, won, strict=True)]
        self.before = LastHand([self.card_of(0), self.card_of(1)], won, word != "fold")
        self.hand += 1
        if self.hand < self.hands:
            self._begin_hand()
        return Round(done.rewards, self.hand >= self.hands)

    def won(self, seat: int) -> bool:
        return self.hand >= self.hands and self.chips[seat] > 0

    def details(self, seat: int) -> dict[str, Any]:
        return {"chips": self.chips[seat], "hands_played": self.hand}

    def mirror(self) -> None:
        self.base = 1 - self.base
        self.first = 1 - self.first

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        """Give the other another card, in this hand and in the last one if that was not shown."""
        other, changed = 1 - seat, False
        pack = range(load_game(self.spiel).max_chance_outcomes())

        # This hand: another rank, with the same moves.
        if self.hand < self.hands:
            now = self.rank(self.card_of(other))
            free = [card for card in pack if card not in self.dealt and self.rank(card) != now]
            history = list(self.state.history())
            history[self.player_of(other)] = int(rng.choice(free))
            state = replay(self.spiel, history)
            if state is not None:
                self.state, changed = state, True

        # The hand before: its cards have no further effect.
        if self.before is not None and not self.before.shown:
            old = self.before.cards
            cards = list(old)
            cards[other] = int(rng.choice([card for card in pack if card not in old]))
            self.before = LastHand(cards, self.before.won, False)
            changed = changed or self.rank(cards[other]) != self.rank(old[other])
        return changed

    def advise(self, seat: int) -> str | None:
        """Return an action drawn from the table of CFR+; the same one each time in one state."""
        shares = find_shares(self.state)
        rng = np.random.default_rng([self.noise, self.hand, len(self.state.history())])
        actions, weights = list(shares), np.array(list(shares.values()))
        return self.name_action(int(rng.choice(actions, p=weights / weights.sum())))

    def equals(self, seat: int) -> list[str]:
        """Return the actions that the table takes in at least one of 50 cases."""
        shares = find_shares(self.state)
        return [self.name_action(action) for action, share in shares.items() if share >= RARE]

    def explain(self, seat: int, action: str) -> str:
        return f"I have a {self.rank(self.card_of(seat))}, and {action}"

    def tell(self, seat: int) -> str:
        if self.hand >= self.hands:
            return "The match is over. "
        begins = "You begin" if self.first == seat else "The other begins"
        return f"Hand {self.hand + 1} of {self.hands}. {begins} this hand. "

    def paint(self, canvas: Canvas, seat: int) -> None:
        chips, number = self.chips[seat], min(self.hand + 1, self.hands)
        canvas.text(f"Hand {number} of {self.hands}", 12, 18, 18, anchor="lm")
        canvas.text(f"Your chips: {chips:+d}", 372, 18, 18, GREEN if chips >= 0 else RED, "rm", 0.4)
        canvas.text("Other", 12, 98, 18, anchor="lm", bold=0.4)
        canvas.text("You", 12, 248, 18, anchor="lm", bold=0.4)
        canvas.box(264, 36, 114, 266, WHITE, GREY, 1, 6)
        canvas.text("This hand", 322, 50, 15, GREY)
        if self.hand < self.hands:
            self._draw_hand(canvas, seat)
        if self.before is not None:
            self._draw_before(canvas, seat, self.before)

    def _draw_hand(self, canvas: Canvas, seat: int) -> None:
        # Cards: the other's face down, the own one, the public one.
        draw_card(canvas, None, 66, 42, 80)
        draw_card(canvas, self.rank(self.card_of(seat)), 66, 192, 80)
        canvas.text("begins", 12, 270 if self.first == seat else 120, 14, GREY, "lm")
        if public := self.dealt[2:]:
            canvas.text("Public", 217, 96, 15, GREY)
            draw_card(canvas, self.rank(public[0]), 182, 108, 70)

        # Chips, and the moves from the first one on.
        paid = self.pay_in()
        canvas.text(f"Pot: {sum(paid)}", 217, 50, 20, INK, bold=0.4)
        canvas.text(f"you {paid[seat]}, other {paid[1 - seat]}", 217, 72, 14, GREY)
        line, stage = 70, 2
        for player, word, dealt in self.bids:
            if dealt != stage:
                canvas.text("public card", 322, line, 13, GREY)
                line, stage = line + 19, dealt
            who, tint = ("You", BLUE) if player == seat else ("Other", INK)
            canvas.text(f"{who}: {word}", 270, line, 16, tint, "lm")
            line += 22

    def _draw_before(self, canvas: Canvas, seat: int, before: LastHand) -> None:
        mine, its = (self.rank(before.cards[player]) for player in (seat, 1 - seat))
        won = before.won[seat]
        shown = f"you {mine}, other {its if before.shown else 'hidden'}"
        result = f"you {'won' if won > 0 else 'lost'} {abs(won)}" if won else "no one won"
        canvas.line([(0, 322), (384, 322)], GREY, 1)
        canvas.text(f"Last hand: {shown}; {result}", 12, 346, 18, anchor="lm")

    def pay_in(self) -> list[int]:
        """Return the chips in the pot by seat: an ante of 1, then calls and raises."""
        paid = [1, 1]
        for player, word, dealt in self.bids:
            if word == "call":
                paid[player] = paid[1 - player]
            elif word in ("bet", "raise"):
                paid[player] = paid[1 - player] + self.raise_by(dealt)
        return paid

    def raise_by(self, dealt: int) -> int:
        """Return the chips of a bet or raise, by the number of cards that are dealt."""
        return 1


class KuhnPoker(PokerMatch):
    """Kuhn poker: one card of three, one bet, ten hands.

    Goal: win more chips than the other in a match of ten hands.
    Observation: the own card, the other's face down, pot, chips and moves of this hand, and the end
        of the last hand. The text says the number of the hand and who begins it, not the cards.
    Actions: `check` and `bet`; after a bet `fold` and `call`.
    Reward: chips won or lost, at the end of each hand: 1, or 2 after a call.
    Endings: terminated after the last hand.
    Splits: train, val and test differ by seed: cards, seat, and so how the opponent plays.
    Oracle: near-equilibrium play: a best reply wins less than 0.001 chips a hand against it. It
        does not win the most against weak players. Default opponent: the same.
    References: Kuhn, 1950. OpenSpiel 2.0.2, `kuhn_poker` and `CFRPlusSolver`.

    Args:
        hands: hands of a match, 1 to 100.
    """

    spiel = "kuhn_poker"
    prompt = game_prompt("You are playing Kuhn poker.")

    def name_action(self, action: int) -> str:
        faced = bool(self.bids) and self.bids[-1][1] == "bet"
        return (("check", "bet"), ("fold", "call"))[faced][action]

    def rank(self, card: int) -> str:
        return RANKS[card]

    def goal(self, seat: int) -> str:
        return (
            f"Two players play {self.hands} hands. The pack is J, Q and K; each gets one card, sees it alone and "
            "pays 1 chip. The first player checks or bets 1 chip. After a check the second checks or bets. Whoever "
            "faces a bet calls with 1 chip or folds. Without a fold the higher card wins: K beats Q beats J. Win as "
            "many chips as you can."
        )


class LeducHoldem(PokerMatch):
    """Leduc hold'em: a pack of six, one own card, one public card, two rounds of bets, five hands.

    Goal: win more chips than the other in a match of five hands.
    Observation: the own card, the other's face down, the public card, pot, chips and moves of this
        hand, and the end of the last one. The text says who begins the hand, not the cards.
    Actions: `check` and `raise`; after a raise `fold`, `call`, and the round's second `raise`.
    Reward: chips won or lost, at the end of each hand, from -13 to 13.
    Endings: terminated after the last hand.
    Splits: train, val and test differ by seed: cards, seat, and so how the opponent plays.
    Oracle: near-equilibrium play (below 0.01 chips a hand for a best reply); the default opponent.
    References: Southey et al., UAI 2005. OpenSpiel 2.0.2, `leduc_poker` and `CFRPlusSolver`.

    Args:
        hands: hands of a match, 1 to 100.
    """

    spiel = "leduc_poker"
    prompt = game_prompt("You are playing Leduc hold'em.")

    def __init__(self, *, hands: int = 5, **kwargs: Any) -> None:
        super().__init__(hands=hands, **kwargs)

    def name_action(self, action: int) -> str:
        facing = 0 in self.state.legal_actions()
        return ("fold", "call" if facing else "check", "raise")[action]

    def rank(self, card: int) -> str:
        return RANKS[card // 2]

    def raise_by(self, dealt: int) -> int:
        return 2 if dealt == 2 else 4

    def goal(self, seat: int) -> str:
        return (
            f"Two players play {self.hands} hands. The pack has two J, two Q and two K; each gets one card, sees it "
            "alone and pays 1 chip. There are two rounds of bets; before the second one public card is laid open. A "
            "raise is 2 chips in the first round and 4 in the second, and there are at most two raises in a round. "
            "Without a fold, the one whose card pairs with the public card wins, else the higher card: K beats Q "
            "beats J; equal cards share the pot. Win as many chips as you can."
        )

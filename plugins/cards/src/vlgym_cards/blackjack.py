"""Blackjack: read the cards, hit or stand."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.reset_options import ResetOption
from vlgym.types import Outcome

from .art import FELT, Canvas, fan
from .blackjack_rules import DEALER_STANDS, Hand, best, hand_of, result
from .cards import Card, draw_suit, names
from .formula_game import read_cards
from .rl4vlm import apply_compat


class Blackjack(VLEnv):
    """Blackjack: beat the dealer without exceeding 21.

    Goal: end with a higher total than the dealer, at most 21. Number cards count their number, J, Q
        and K 10, an ace 11 or, where that would bust, 1. The deck is endless. The dealer shows one
        card, and after the player stands draws below 17 and stands on every 17. A total of 21 does
        not end the game by itself, and there is no bonus for a natural.
    Observation: the dealer's cards above (one face down until the game is over), the player's
        below, all of them inside the picture (300 x 300 pixels by default). From the fifth card on
        a hand overlaps like a fan, from the ninth on it lies in two rows, with every corner index
        visible. The text does not tell the cards.
    Actions: `stand` and `hit`; both are always legal.
    Reward: standing pays +1 for a win, 0 for a draw, -1 for a loss; a hit that busts pays -1;
        another hit 0.
    Endings: terminated by standing or busting; truncated after 20 turns, which no hand of legal
        actions reaches unfinished.
    Success: a win. Exact odds of winning: random 28.1 %, always stand 38.1 %, hit below 17 40.8 %,
        best 43.2 %.
    Info: `player`, `dealer` (visible cards only), `player_total`; `solved` and `return_positive`,
        both a win.
    Splits: train, val and test differ by seed only.
    Oracle: exact: it maximises the probability of winning (by recursion over the endless deck).
        Playing for expected reward instead wins 42.9 % and loses less.
    References: Sutton and Barto, Reinforcement Learning, 2nd edition, example 5.1. Gymnasium's
        Blackjack-v1. Zhai et al., NeurIPS 2024 (gym-cards).

    `compat="rl4vlm"` gives the published picture, where ten-valued cards are always J, Q or K, the
    fifth card of a hand lies outside the canvas, and the dealer's second card stays face down; and
    the published reply parser and random fallback. Not reproduced: the face-down card in info, and
    prompts that describe the previous episode.

    Args:
        compat: `None` or `"rl4vlm"`.

    Options of `reset`: `player` and `dealer`, lists of cards such as `["H5", "SK"]` (the dealer's
    second card is the hidden one).
    """

    prompt = PromptTemplate(
        version=1, instructions="You are playing blackjack. {task}\n{format}", turn="{state}Legal actions: {actions}"
    )
    reset_options: ClassVar = {
        "player": ResetOption(
            "your hand", 'a list of two cards or more, worth at most 21, such as ["H5", "SK"]',
            lambda env, value: _read_player(value), ("H5", ["H5"], ["HK", "SK", "DK"]),
        ),
        "dealer": ResetOption(
            "the dealer's hand; the second card is the hidden one", 'a list of two cards such as ["H5", "SK"]',
            lambda env, value: read_cards(value, 2), ("H5", ["H5"]),
        ),
    }  # fmt: skip

    def __init__(self, *, compat: str | None = None, **kwargs: Any) -> None:
        self.compat = compat
        super().__init__(**apply_compat(compat, kwargs))
        self.player: list[Card] = []
        self.dealer: list[Card] = []
        self.reward: int | None = None
        self._table: Canvas | None = None

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        dealer, player = ([self._draw(rng), self._draw(rng)] for _ in range(2))
        self.dealer = list(options.get("dealer", dealer))
        self.player = list(options.get("player", player))
        self.reward = None

    def act(self, action: str) -> Outcome:
        if action == "hit":
            self.player.append(self._draw(self.np_random))
            if not self.player_hand.bust:
                return Outcome(0.0, feedback="one more card")
            self.reward = -1
            return Outcome(-1.0, terminated=True, feedback="bust")

        # The player stands, so the dealer draws.
        while self.dealer_hand.total < DEALER_STANDS:
            self.dealer.append(self._draw(self.np_random))
        self.reward = result(self.player_hand, self.dealer_hand)
        return Outcome(float(self.reward), terminated=True, feedback=("draw", "win", "loss")[self.reward])

    def image(self) -> NDArray[np.uint8]:
        if self._table is None:
            self._table = Canvas(self.image_size, FELT)
            dealer, player, size = ((5, 5), (5, 130), 16) if self.compat else ((5, 3), (5, 128), 18)
            self._table.write("Dealer", *dealer, size)
            self._table.write("Player", *player, size)
        canvas = self._table.copy()
        if self.compat:
            self._lay_published(canvas)
        else:
            self._lay(canvas)
        return canvas.finish()

    def describe(self) -> str:
        dealer = [str(self.dealer[0]), "hidden"]
        if self.reward is not None and not self.compat:
            dealer = names(self.dealer)
        return f"dealer {' '.join(dealer)}, player {' '.join(names(self.player))}"

    def task(self) -> str:
        return (
            "The picture shows the dealer's cards above (one is face down) and your cards below. "
            "Number cards count their number, J, Q and K count 10, A counts 11 or 1. "
            "The action hit takes another card; a total above 21 loses. The action stand ends your turn; "
            "then the dealer draws below 17, and the higher total wins."
        )

    def legal_actions(self) -> list[str]:
        return ["stand", "hit"]

    def oracle(self) -> str:
        return "stand" if self.player_hand.bust else best(self.player_hand, self.dealer[0].value())[0]

    def think(self, action: str) -> str:
        hand, open_card = self.player_hand, self.dealer[0]
        shown = "A" if open_card.rank == 1 else str(open_card.value())
        return f"player {'soft ' if hand.soft else ''}{hand.total} dealer {shown}; {action}"

    def success(self) -> bool:
        return self.reward == 1

    def extra_info(self) -> dict[str, Any]:
        return {
            "player": names(self.player),
            "dealer": names(self.dealer if self.reward is not None else self.dealer[:1]),
            "player_total": self.player_hand.total,
            "solved": self.reward == 1,
            "return_positive": self.episode_return > 0,
        }

    @property
    def player_hand(self) -> Hand:
        return hand_of(card.value() for card in self.player)

    @property
    def dealer_hand(self) -> Hand:
        """The dealer's hand, the face-down card included."""
        return hand_of(card.value() for card in self.dealer)

    def _draw(self, rng: np.random.Generator) -> Card:
        """Draw from the endless deck. The published game shows faces for tens, at the same odds."""
        rank = int(rng.integers(1, 14))
        if self.compat and rank == 10:
            rank = int(rng.integers(11, 14))
        return Card(rank, draw_suit(rng))

    def _lay(self, canvas: Canvas) -> None:
        hidden = self.reward is None
        for index, x in enumerate(fan(len(self.dealer), 5, 290, 70, 4)):
            canvas.card(None if hidden and index == 1 else self.dealer[index], x, 26, 70, 98)

        # Above eight cards two overlapping rows, so that the indices stay readable.
        half = (len(self.player) + 1) // 2 if len(self.player) > 8 else len(self.player)
        for y, row in ((151, self.player[:half]), (200, self.player[half:])):
            for x, card in zip(fan(len(row), 5, 290, 70, 4), row, strict=True):
                canvas.card(card, x, y, 70, 98)

    def _lay_published(self, canvas: Canvas) -> None:
        canvas.card(self.dealer[0], 5, 25, 70, 98)
        canvas.card(None, 78, 25, 70, 98)
        for index, card in enumerate(self.player):
            row, column = divmod(index, 5)
            canvas.card(card, 5 + 74 * column, 150 + 102 * row, 70, 98)


def _read_player(value: Any) -> tuple[Card, ...]:
    hand = read_cards(value)
    if len(hand) < 2 or hand_of(card.value() for card in hand).bust:
        raise ValueError
    return hand

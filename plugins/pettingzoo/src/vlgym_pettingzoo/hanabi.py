"""Hanabi for two to five, and a player by rules, without conventions for hints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any, ClassVar

import numpy as np
import pyspiel

from vlgym.errors import check_number

from .base import BLUE, GREEN, INK, RED, WHITE, Canvas, Colour, game_prompt
from .spiel import SpielGame, replay

COLOURS = "RYGWB"
COPIES = {1: 3, 2: 2, 3: 2, 4: 2, 5: 1}  # cards of each rank in one colour

Card = tuple[str, int]
COLOUR_NAMES = {"R": "red", "Y": "yellow", "G": "green", "W": "white", "B": "blue"}
RISK = 0.6  # least chance to be playable of a card that is played while there are lives to spare


@dataclass(frozen=True)
class Slot:
    """A card in a hand (`None` to its owner), and its possible colours and ranks to its owner."""

    card: Card | None
    hinted: str
    colours: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class View:
    """A player's knowledge: `fireworks` by their top, hands of `others` in the order of turns."""

    lives: int
    hints: int
    deck: int  # cards that are left
    fireworks: dict[str, int]
    own: tuple[Slot, ...]
    others: tuple[tuple[Slot, ...], ...]
    discards: tuple[Card, ...]
    player: int = 0


def name_hint(what: str, player: int, players: int) -> str:
    """Name a hint: `hint red`, `hint 3`; among more than two `hint player 3 rank 2`."""
    if players == 2:
        return f"hint {what}"
    return f"hint player {player + 1} {'rank ' if what.isdigit() else ''}{what}"


def read_view(observation: str, player: int = 0) -> View:
    """Read OpenSpiel's observation of a player."""
    fields = dict(line.split(": ", 1) for line in observation.splitlines() if ": " in line)
    hands: list[list[Slot]] = [[]]

    # A line of a hand is `R1 || X1|RYGWB1`: card, hint, and what the owner may think.
    for line in observation.splitlines():
        if line.startswith("-----"):
            hands.append([])
        elif " || " in line:
            shown, known = line.split(" || ")
            hinted, _, possible = known.partition("|")
            card = None if shown == "XX" else _read_card(shown)
            colours = "".join(letter for letter in possible if letter in COLOURS)
            ranks = tuple(int(letter) for letter in possible if letter.isdigit())
            hands[-1].append(Slot(card, hinted, colours, ranks))

    discards = observation.rpartition("Discards:")[2].split()
    return View(
        int(fields["Life tokens"]), int(fields["Info tokens"]), int(fields["Deck size"]),
        dict(map(_read_card, fields["Fireworks"].split())), tuple(hands[0]), tuple(map(tuple, hands[1:])),
        tuple(map(_read_card, discards)), player,
    )  # fmt: skip


def _read_card(word: str) -> Card:
    return word[0], int(word[1])


def choose(view: View, legal: Iterable[str]) -> str:
    allowed = set(legal)

    # A card that surely fits is played first; at the end of the deck one that probably does, too.
    own = [_candidates(slot, view, hide=chain(*view.others)) for slot in view.own]
    safe = [_share(cards, lambda card: _playable(card, view)) for cards in own]
    best = max(safe)
    play = f"play {safe.index(best) + 1}"
    risky = view.lives > 1 and best >= RISK
    if best == 1.0 or (risky and view.hints < 8 and view.deck <= 2):
        return play

    # A hint makes another play a card; else one risks a card of one's own.
    if view.hints > 0 and (hint := _playable_hint(view, allowed)):
        return hint
    if risky:
        return play

    # A card that never fits brings back a hint; with hints to spare, one tells much.
    if view.hints < 8:
        useless = [_share(cards, lambda card: not _useful(card, view)) for cards in own]
        if 1.0 in useless:
            return f"discard {useless.index(1.0) + 1}"
    many = view.hints >= 7 or (view.hints > 3 and view.deck == 0)
    if many and (hint := _telling_hint(view, allowed)):
        return hint

    # The card goes that is least likely the last of its kind.
    if view.hints < 8:
        risk = [_share(cards, lambda card: _last_copy(card, view)) for cards in own]
        order = sorted(range(len(own)), key=lambda place: (round(risk[place], 3), own[place] == [], place))
        return f"discard {order[0] + 1}"
    return _telling_hint(view, allowed) or sorted(allowed)[0]


def _playable_hint(view: View, allowed: set[str]) -> str | None:
    """Return the hint after which most cards are known to be playable, else most probably are."""
    scored = []
    for hint, index, after in _hints(view, allowed):
        # Cards that a third player knows by colour and rank do not count.
        third = [slot for each, hand in enumerate(view.others) if each != index for slot in hand]
        known = {slot.card for slot in third if len(slot.colours) == len(slot.ranks) == 1}
        sure = partial = 0.0
        for pair in zip(view.others[index], after, strict=True):
            card = pair[0].card
            if card is None or not _playable(card, view) or card in known:
                continue
            old, new = (_share(_candidates(slot, view, third), lambda card: _playable(card, view)) for slot in pair)
            sure += new == 1.0 and old < 1.0
            partial += max(0.0, new - old) * (old < 1.0)
        if sure or partial > 0.15:
            scored.append((sure, partial, -index, hint))
    return max(scored)[-1] if scored else None


def _telling_hint(view: View, allowed: set[str]) -> str | None:
    """Return the hint that excludes the most possibilities."""

    def possibilities(hand: Iterable[Slot]) -> int:
        return sum(len(slot.colours) * len(slot.ranks) for slot in hand)

    scored = [
        (possibilities(view.others[index]) - possibilities(after), -index, hint)
        for hint, index, after in _hints(view, allowed)
    ]
    return max(scored)[-1] if scored else None


def _hints(view: View, allowed: set[str]) -> list[tuple[str, int, tuple[Slot, ...]]]:
    """Return every legal hint, the place in `view.others` of its hand, and this hand after it."""
    hints, players = [], len(view.others) + 1
    for index, hand in enumerate(view.others):
        for what in (*COLOURS, *COPIES):
            word = COLOUR_NAMES.get(str(what), str(what))
            name = name_hint(word, (view.player + index + 1) % players, players)
            if name in allowed:
                hints.append((name, index, tuple(_after_hint(slot, what) for slot in hand)))
    return hints


def _after_hint(slot: Slot, what: str | int) -> Slot:
    touched = slot.card is not None and what in slot.card
    if isinstance(what, str):
        return replace(slot, colours=what if touched else slot.colours.replace(what, ""))
    ranks = (what,) if touched else tuple(rank for rank in slot.ranks if rank != what)
    return replace(slot, ranks=ranks)


def _candidates(slot: Slot, view: View, hide: Iterable[Slot] = ()) -> list[tuple[Card, int]]:
    """Return a card's possible values to its owner, who sees `hide`, with their unseen copies."""
    gone = Counter(view.discards) + Counter(other.card for other in hide if other.card is not None)
    for colour, top in view.fireworks.items():
        gone.update((colour, rank) for rank in range(1, top + 1))
    cards = [(card, COPIES[card[1]] - gone[card]) for card in product(slot.colours, slot.ranks)]
    return [(card, left) for card, left in cards if left > 0]


def _share(cards: list[tuple[Card, int]], holds: Callable[[Card], bool]) -> float:
    total = sum(left for _, left in cards)
    return sum(left for card, left in cards if holds(card)) / total if total else 0.0


def _playable(card: Card, view: View) -> bool:
    return view.fireworks[card[0]] == card[1] - 1


def _useful(card: Card, view: View) -> bool:
    """True if a card can still be played some time."""
    gone = Counter(view.discards)
    below = [(card[0], rank) for rank in range(view.fireworks[card[0]] + 1, card[1])]
    return card[1] > view.fireworks[card[0]] and all(gone[each] < COPIES[each[1]] for each in below)


def _last_copy(card: Card, view: View) -> bool:
    return _useful(card, view) and Counter(view.discards)[card] == COPIES[card[1]] - 1


CARD_TINTS = {"R": RED, "Y": (235, 180, 20), "G": GREEN, "W": (250, 250, 250), "B": BLUE}
NIGHT, BACK, FAINT = (44, 48, 66), (110, 114, 130), (170, 174, 186)
ENOUGH_POINTS = 14  # of a game that counts as success
WORDS = {2: "Two", 3: "Three", 4: "Four", 5: "Five"}


class Hanabi(SpielGame):
    """Hanabi for two to five, who build fireworks and see each other's cards, not their own.

    Goal: play the cards of each colour in the order 1, 2, 3, 4, 5. 25 points at most.
    Observation: lives, hints, deck, fireworks, discards and the last action; all others' cards, and
        the own ones from behind, each with what its owner was told. The text tells no card. A hand
        is of five cards (four or five players: four).
    Actions: `play 1` to `play 5`, `discard 1` to `discard 5` (not with 8 hints), `hint red`, `hint
        3` and so on: all cards of that colour or rank in the other's hand (only with a hint left).
        With more than two players: `hint player 3 red`, `hint player 3 rank 2`.
    Reward: 1 for each card that fits; all are paid, also for the cards of others until your next
        turn. Another card costs one of three lives; the third ends the game and takes all back.
    Endings: terminated by the third lost life, by 25 points, or one turn each after the last card
        is drawn; truncated after 60 turns of a seat.
    Success: the game is over with at least 14 points. `score` is the share of 25.
    Splits: train, val and test differ by seed: the cards and the seat.
    Oracle: a player by rules that uses only what a player may know. Default opponent: the same.
    References: Bard et al., The Hanabi Challenge, 2020. OpenSpiel 2.0.2, `hanabi(players=N)`.

    Args:
        players: 2 to 5.
    """

    hidden_information: ClassVar[bool] = True
    prompt = game_prompt("You are playing Hanabi.")
    ground = NIGHT

    def __init__(self, *, players: int = 2, **kwargs: Any) -> None:
        check_number("players", players, 2, 5)
        self.players = self.seats = players
        self.cards = 5 if players < 4 else 4
        self.spiel = f"hanabi(players={players})"
        super().__init__(**kwargs)

    def name_action(self, action: int) -> str:
        mover = self.state.current_player()
        words = self.state.action_to_string(mover, action).strip("()").split()
        if words[0] == "Reveal":
            what = COLOUR_NAMES[words[-1]] if words[-2] == "color" else words[-1]
            return name_hint(what, (mover + int(words[2])) % self.seats, self.seats)
        return f"{words[0].lower()} {int(words[1]) + 1}"

    def public_moves(self, seat: int) -> list[str]:
        """Return all moves of a seat: its legal hints alone would tell others' cards."""
        places = range(1, self.cards + 1)
        cards = [f"{verb} {place}" for verb in ("play", "discard") for place in places]
        others = [player for player in range(self.seats) if player != self.player_of(seat)]
        hints = product(others, (*COLOUR_NAMES.values(), *"12345"))
        return [*cards, *(name_hint(what, player, self.seats) for player, what in hints)]

    def view(self, seat: int) -> View:
        player = self.player_of(seat)
        return read_view(self.state.observation_string(player), player)

    def goal(self, seat: int) -> str:
        order, other, others = "", "the other", "other's"
        if self.seats > 2:
            number = self.player_of(seat) + 1
            following = number % self.seats + 1
            order = f"You are player {number}; after you it is player {following}'s turn. "
            other, others = "one of the others", "others'"
        return (
            f"{WORDS[self.seats]} players build five fireworks together: red, yellow, green, white and blue, each from "
            f"1 to 5 in this order. {order}You see the {others} cards, not your own. In your turn play one of your "
            f"cards, or discard one, which brings back a hint, or spend a hint to show {other} all cards of one colour "
            "or one rank in that hand. Of each colour there are three 1, two 2, two 3, two 4 and one 5. A played card "
            "that does not fit costs a life; when the third life is lost all points are lost. When the deck is empty "
            f"each player has one more turn. Your cards are numbered 1 to {self.cards} from the left; a new card comes "
            "in at the right."
        )

    def won(self, seat: int) -> bool:
        return self.state.is_terminal() and self.state.returns()[0] >= ENOUGH_POINTS

    def points(self, seat: int) -> float | None:
        return self.state.returns()[0] / 25

    def advise(self, seat: int) -> str | None:
        return choose(self.view(seat), self.moves(seat))

    def explain(self, seat: int, action: str) -> str:
        view = self.view(seat)
        built = " ".join(f"{COLOUR_NAMES[colour]} {top}" for colour, top in view.fireworks.items())
        cards = [[slot.card for slot in hand if slot.card] for hand in view.others]
        hands = "; ".join(" ".join(f"{COLOUR_NAMES[colour]} {rank}" for colour, rank in hand) for hand in cards)
        return f"the fireworks are {built}, the other hands {hands}, so {action}"

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        """Give a seat other cards that fit every hint it got, with the same view of it."""
        history = list(self.state.history())
        player = self.player_of(seat)
        places, witness = self._dealt_at(player), (player + 1) % self.seats
        view, shown = map(self.state.observation_string, (player, witness))
        for _ in range(30):
            # Two cards of the hand change places, or one becomes another card.
            changed = list(history)
            place = places[int(rng.integers(len(places)))]
            if rng.random() < 0.5:
                other = places[int(rng.integers(len(places)))]
                changed[place], changed[other] = changed[other], changed[place]
            else:
                changed[place] = int(rng.integers(25))

            # The seat must see the same, and the next player another hand.
            state = replay(self.spiel, changed)
            if state is None or state.observation_string(player) != view:
                continue
            if state.observation_string(witness) != shown:
                self.state = state
                return True
        return False

    def _dealt_at(self, player: int) -> list[int]:
        """Return the places in the history of the cards of a player's hand."""
        hands: list[list[int]] = [[] for _ in range(self.seats)]
        receiver = 0
        for index, move in enumerate(self.state.full_history()):
            if move.player == pyspiel.PlayerId.CHANCE:
                first = index < self.seats * self.cards
                hands[index // self.cards if first else receiver].append(index)
            elif move.action < 2 * self.cards:  # a discard or a play
                hands[move.player].pop(move.action % self.cards)
                receiver = move.player
        return hands[player]

    def paint(self, canvas: Canvas, seat: int) -> None:
        view = self.view(seat)
        for x, words in (10, f"Lives {view.lives}"), (140, f"Hints {view.hints}"), (270, f"Deck {view.deck}"):
            canvas.text(words, x, 16, 18, WHITE, "lm")
        top, tall, low, bottom = (34, 44, 322, 351) if self.seats == 2 else (32, 30, 334, 356)

        # For each colour a firework at the top and its discards at the bottom.
        canvas.text("Fireworks", 10, top + tall / 2, 15, WHITE, "lm")
        canvas.text("Discards", 10, low, 14, WHITE, "lm")
        for place, colour in enumerate(COLOURS):
            x, tint, ink = 92 + 56 * place, CARD_TINTS[colour], _ink(colour)
            canvas.box(x, top, 46, tall, tint, WHITE, 2, 6)
            canvas.text(str(view.fireworks[colour]), x + 23, top + tall / 2, 26, ink, bold=0.6)
            x = 78 + 61 * place
            ranks = "".join(sorted(str(rank) for each, rank in view.discards if each == colour))
            canvas.box(x, low - 11, 58, 22, tint, None, 1, 3)
            canvas.text(ranks or "-", x + 29, low, 14 if len(ranks) < 8 else 10, ink)

        # Two hands have room for a line each; several stand in rows, in the order of turns.
        if self.seats == 2:
            canvas.text("Other's cards, and what the other was told", 10, 94, 14, WHITE, "lm")
            canvas.text("Your cards, and what you were told", 10, 206, 14, WHITE, "lm")
            self._draw_hand(canvas, view.others[0], (14, 104, 74, 60), 14)
            self._draw_hand(canvas, view.own, (14, 216, 74, 60), 14, own=True)
        else:
            self._draw_hands(canvas, view)
        if self.last is not None:
            number = self.player_of(self.last[0]) + 1
            who = "You" if self.last[0] == seat else "Other" if self.seats == 2 else f"Player {number}"
            canvas.text(f"Last: {who}: {self.last[1]}", 10, bottom, 17, WHITE, "lm")

    def _draw_hands(self, canvas: Canvas, view: View) -> None:
        high = 254 / self.seats
        for row, hand in enumerate((*view.others, view.own)):
            y, tall, own = 68 + high * row, high - 19, row == len(view.others)
            name = "You" if own else f"Player {(view.player + row + 1) % self.seats + 1}"
            canvas.text(name, 10, y + tall / 2, 16, WHITE, "lm")
            canvas.text("told:", 10, y + tall + 8, 13, FAINT, "lm")
            self._draw_hand(canvas, hand, (76, y, 304 / self.cards, tall), 8, own)

    def _draw_hand(
        self, canvas: Canvas, hand: tuple[Slot, ...], box: tuple[float, float, float, float],
        gap: float, own: bool = False,
    ) -> None:  # fmt: skip
        """Draw cards with their owner's hints below; `box`: left, top, card to card, height."""
        x, y, pitch, tall = box
        wide = pitch - gap
        for place, slot in enumerate(hand):
            colour, rank = (letter.replace("X", "") for letter in slot.hinted)
            known = " ".join(filter(None, (COLOUR_NAMES.get(colour), rank)))
            label = rank or "?"
            if slot.card is not None:
                colour, label = slot.card[0], str(slot.card[1])

            # The card, its place for its owner, and the hints below.
            ink = _ink(colour) if colour else WHITE
            canvas.box(x, y, wide, tall, CARD_TINTS[colour] if colour else BACK, WHITE, 2, 7)
            canvas.text(label, x + wide / 2, y + tall / 2, min(34, tall * 0.8), ink, bold=0.8)
            if own:
                canvas.text(f"{place + 1}.", x + 5, y + 12, 14, ink, "lm")
            below = y + tall + (14 if self.seats == 2 else 8)
            canvas.text(known or "nothing", x + wide / 2, below, 13, WHITE if known else FAINT)
            x += pitch


def _ink(colour: str) -> Colour:
    return INK if colour in "YW" else WHITE

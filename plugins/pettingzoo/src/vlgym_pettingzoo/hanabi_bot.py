"""A player of Hanabi that goes by rules, from what one player may know. It has no convention with the others: a hint
says what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain

COLOURS = "RYGWB"
COPIES = {1: 3, 2: 2, 3: 2, 4: 2, 5: 1}
"""Cards of each rank in one colour."""

Card = tuple[str, int]
NAMES = {"R": "red", "Y": "yellow", "G": "green", "W": "white", "B": "blue"}
RISK = 0.6
"""Chance that an own card is playable from which it is played while there are lives to spare."""


@dataclass(frozen=True)
class Held:
    """A card in a hand: what it is (`None` to its owner), and which colours and ranks its owner may think it has."""

    card: Card | None
    hinted: str
    colours: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class View:
    """What a player knows.

    Attributes:
        lives: left.
        hints: left.
        deck: number of cards in it.
        fireworks: top of each.
        own: hand of this player.
        others: hands of the others, as they take their turns after this player.
        discards: in order.
        player: number of this player, from 0.
    """

    lives: int
    hints: int
    deck: int
    fireworks: dict[str, int]
    own: tuple[Held, ...]
    others: tuple[tuple[Held, ...], ...]
    discards: tuple[Card, ...]
    player: int = 0

    def hint(self, index: int, what: str) -> str:
        """The hint to `others[index]`."""
        players = len(self.others) + 1
        return name_hint(what, (self.player + index + 1) % players, players)


def name_hint(what: str, player: int, players: int) -> str:
    """Name a hint: `hint red`, `hint 3`; among more than two players `hint player 3 red`, `hint player 3 rank 2`."""
    if players == 2:
        return f"hint {what}"
    return f"hint player {player + 1} {'rank ' if what.isdigit() else ''}{what}"


def read_view(observation: str, player: int = 0) -> View:
    """Read OpenSpiel's observation of a player."""
    fields = dict(line.split(": ", 1) for line in observation.splitlines() if ": " in line)
    hands: list[list[Held]] = [[]]
    for line in observation.splitlines():
        if line.startswith("-----"):
            hands.append([])
        elif " || " in line:
            shown, known = line.split(" || ")
            hinted, _, possible = known.partition("|")
            card = None if shown == "XX" else (shown[0], int(shown[1]))
            colours = "".join(letter for letter in possible if letter in COLOURS)
            hands[-1].append(Held(card, hinted, colours, tuple(int(c) for c in possible if c.isdigit())))
    discards = observation.rpartition("Discards:")[2].split()
    return View(
        int(fields["Life tokens"]),
        int(fields["Info tokens"]),
        int(fields["Deck size"]),
        {word[0]: int(word[1]) for word in fields["Fireworks"].split()},
        tuple(hands[0]),
        tuple(tuple(hand) for hand in hands[1:]),
        tuple((word[0], int(word[1])) for word in discards),
        player,
    )


def choose(view: View, legal: Iterable[str]) -> str:
    """Return an action: `play 2`, `discard 1`, `hint red`, `hint 3`, `hint player 3 red`, `hint player 3 rank 2`."""
    allowed = set(legal)
    own = [_candidates(held, view, hide=chain(*view.others)) for held in view.own]
    safe = [(_share(cards, lambda card: _playable(card, view)), place) for place, cards in enumerate(own)]
    best, place = max(safe, key=lambda pair: (pair[0], -pair[1]))
    if best == 1.0 or (view.lives > 1 and best >= RISK and view.hints < 8 and view.deck <= 2):
        return f"play {place + 1}"
    if view.hints > 0 and (hint := _playable_hint(view, allowed)):
        return hint
    if view.lives > 1 and best >= RISK:
        return f"play {place + 1}"
    if view.hints < 8:
        useless = [_share(cards, lambda card: not _useful(card, view)) for cards in own]
        if 1.0 in useless and f"discard {useless.index(1.0) + 1}" in allowed:
            return f"discard {useless.index(1.0) + 1}"
    if view.hints >= 7 or (view.hints > 3 and view.deck == 0):
        hint = _telling_hint(view, allowed)
        if hint:
            return hint
    if view.hints < 8:
        risk = [_share(cards, lambda card: _last_copy(card, view)) for cards in own]
        order = sorted(range(len(own)), key=lambda place: (round(risk[place], 3), own[place] == [], place))
        return f"discard {order[0] + 1}"
    return _telling_hint(view, allowed) or sorted(allowed)[0]


def _playable_hint(view: View, allowed: set[str]) -> str | None:
    """The hint after which its player knows of the most cards that they can be played; else one that touches such a
    card and tells the most. Cards that a third player knows of do not count. Of equals, the player who is next."""
    scored = []
    for hint, index, after in _hints(view, allowed):
        third = [hand for each, hand in enumerate(view.others) if each != index]
        sure = partial = 0.0
        for before, held in zip(view.others[index], after, strict=True):
            if held.card is None or not _playable(held.card, view) or held.card in _known(third, view):
                continue
            old = _share(_candidates(before, view, chain(*third)), lambda card: _playable(card, view))
            new = _share(_candidates(held, view, chain(*third)), lambda card: _playable(card, view))
            sure += new == 1.0 and old < 1.0
            partial += max(0.0, new - old) * (old < 1.0)
        scored.append((sure, partial, -index, hint))
    scored = [row for row in scored if row[0] or row[1] > 0.15]
    return max(scored)[-1] if scored else None


def _known(hands: Iterable[Iterable[Held]], view: View) -> set[Card | None]:
    """The cards of these hands whose owners have been told colour and rank."""
    return {held.card for held in chain(*hands) if len(held.colours) == len(held.ranks) == 1}


def _telling_hint(view: View, allowed: set[str]) -> str | None:
    """The hint that excludes the most possibilities."""
    scored = []
    for hint, index, after in _hints(view, allowed):
        scored.append((_possibilities(view.others[index]) - _possibilities(after), -index, hint))
    return max(scored)[-1] if scored else None


def _possibilities(hand: Iterable[Held]) -> int:
    return sum(len(held.colours) * len(held.ranks) for held in hand)


def _hints(view: View, allowed: set[str]) -> list[tuple[str, int, tuple[Held, ...]]]:
    """Every legal hint, with whose hand of `view.others` it is about, and that hand as its owner sees it afterwards."""
    found = []
    for index, hand in enumerate(view.others):
        for colour in COLOURS:
            if (name := view.hint(index, NAMES[colour])) in allowed:
                found.append((name, index, tuple(_told_colour(held, colour) for held in hand)))
        for rank in COPIES:
            if (name := view.hint(index, str(rank))) in allowed:
                found.append((name, index, tuple(_told_rank(held, rank) for held in hand)))
    return found


def _told_colour(held: Held, colour: str) -> Held:
    touched = held.card is not None and held.card[0] == colour
    return Held(held.card, held.hinted, colour if touched else held.colours.replace(colour, ""), held.ranks)


def _told_rank(held: Held, rank: int) -> Held:
    touched = held.card is not None and held.card[1] == rank
    ranks = (rank,) if touched else tuple(each for each in held.ranks if each != rank)
    return Held(held.card, held.hinted, held.colours, ranks)


def _candidates(held: Held, view: View, hide: Iterable[Held] = ()) -> list[tuple[Card, int]]:
    """What a card may be to its owner, with how many copies are unseen; `hide` are cards that the owner sees."""
    gone = Counter(view.discards) + Counter(other.card for other in hide if other.card is not None)
    for colour, top in view.fireworks.items():
        gone.update((colour, rank) for rank in range(1, top + 1))
    cards = [((colour, rank), COPIES[rank] - gone[colour, rank]) for colour in held.colours for rank in held.ranks]
    return [(card, left) for card, left in cards if left > 0]


def _share(cards: list[tuple[Card, int]], holds: Callable[[Card], bool]) -> float:
    total = sum(left for _, left in cards)
    return sum(left for card, left in cards if holds(card)) / total if total else 0.0


def _playable(card: Card, view: View) -> bool:
    return view.fireworks[card[0]] == card[1] - 1


def _useful(card: Card, view: View) -> bool:
    """Whether a card can still be played some time."""
    gone = Counter(view.discards)
    below = [(card[0], rank) for rank in range(view.fireworks[card[0]] + 1, card[1])]
    return card[1] > view.fireworks[card[0]] and all(gone[each] < COPIES[each[1]] for each in below)


def _last_copy(card: Card, view: View) -> bool:
    return _useful(card, view) and Counter(view.discards)[card] == COPIES[card[1]] - 1

"""Hanabi for two to five: fireworks of five colours, and nobody sees the own cards."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from vlgym.errors import check_number
from vlgym.types import Image

from .art import BLUE, GREEN, INK, RED, WHITE, Canvas, Colour
from .hanabi_bot import COLOURS, NAMES, Held, View, choose, name_hint, read_view
from .prompts import game_prompt
from .spiel import SpielGame, replay

TINTS: dict[str, Colour] = {
    "R": RED, "Y": (235, 180, 20), "G": GREEN, "W": (250, 250, 250), "B": BLUE,
}  # fmt: skip
NIGHT, BACK, FAINT = (44, 48, 66), (110, 114, 130), (170, 174, 186)
ENOUGH = 14
"""Points of a game that count as success."""
WORDS = {2: "Two", 3: "Three", 4: "Four", 5: "Five"}


class Hanabi(SpielGame):
    """Hanabi for two to five players, who build five fireworks together and see each other's cards, not their own.

    Goal: play the cards of each colour in the order 1, 2, 3, 4, 5. A point for every card, 25 at most.
    Observation: lives, hints, deck, fireworks and discards; the cards of every other player, with what that player has
        been told of each; the own cards from behind, with what you have been told (384 x 384 pixels by default). The
        line at the bottom is the last action. The text tells no card. A hand is of five cards, or of four where four
        or five play.
    Actions: `play 1` to `play 5`, `discard 1` to `discard 5` (not with 8 hints), `hint red`, `hint 3` and so on: all
        cards of that colour or rank in the other's hand (only with a hint left). With more than two players a hint
        names its player: `hint player 3 red`, `hint player 3 rank 2`.
    Reward: 1 for each card that fits; all are paid, also for the cards that others play until it is your turn again. A
        card that does not fit costs one of three lives; the third ends the game and takes all points back.
    Endings: terminated by the third lost life, by 25 points, or one turn each after the last card is drawn; truncated
        after 60 turns of a seat.
    Success: the game is over with at least 14 points. `score` is the share of 25.
    Splits: train, val and test differ by seed: the cards and the seat.
    Oracle: a player by rules that uses only what a player may know. Default opponent: the same. registry.yaml has its
        mean score for two players, docs/games.md for all numbers.
    References: Bard et al., The Hanabi Challenge, 2020. OpenSpiel 2.0.2, `hanabi(players=N)`. Drawing, texts and the
        player by rules are this package's.

    Args:
        players: how many play, 2 to 5.
        **kwargs: of `MultiVLEnv`.
    """

    hidden_information: ClassVar[bool] = True
    prompt = game_prompt("You are playing Hanabi.")

    def __init__(self, *, players: int = 2, **kwargs: Any) -> None:
        check_number("players", players, 2, 5)
        self.players = self.seats = players
        self.cards = 5 if players < 4 else 4
        self.spiel = f"hanabi(players={players})"
        super().__init__(**kwargs)

    def name_action(self, action: int) -> str:
        mover = self.state.current_player()
        told = self.state.action_to_string(mover, action).strip("()").split()
        if told[0] == "Reveal":
            what = NAMES[told[-1]] if told[-2] == "color" else told[-1]
            return name_hint(what, (mover + int(told[2])) % self.seats, self.seats)
        return f"{told[0].lower()} {int(told[1]) + 1}"

    def public_moves(self, seat: int) -> list[str]:
        """What somebody who may not see the other cards can expect of a seat: legal hints would tell what one holds."""
        places = [f"{verb} {place}" for verb in ("play", "discard") for place in range(1, self.cards + 1)]
        others = [player for player in range(self.seats) if player != self.player_of(seat)]
        hints = [name_hint(what, each, self.seats) for each in others for what in (*NAMES.values(), *"12345")]
        return [*places, *hints]

    def view(self, seat: int) -> View:
        return read_view(self.state.observation_string(self.player_of(seat)), self.player_of(seat))

    def goal(self, seat: int) -> str:
        number, order, other, others = self.player_of(seat) + 1, "", "the other", "other's"
        if self.seats > 2:
            order = f"You are player {number}; after you it is player {number % self.seats + 1}'s turn. "
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
        return self.state.is_terminal() and self.state.returns()[0] >= ENOUGH

    def points(self, seat: int) -> float | None:
        return self.state.returns()[0] / 25

    def advise(self, seat: int) -> str | None:
        return choose(self.view(seat), self.moves(seat))

    def explain(self, seat: int, action: str) -> str:
        return f"after looking at the fireworks and at what each of us knows, {action}"

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        """Give a seat other cards that fit every hint it got: what OpenSpiel shows to it stays the same."""
        history = list(self.state.history())
        player = self.player_of(seat)
        held, witness = self._dealt_at(player), (player + 1) % self.seats
        seen, shown = self.state.observation_string(player), self.state.observation_string(witness)
        for _ in range(30):
            changed = list(history)
            place = held[int(rng.integers(len(held)))]
            if rng.random() < 0.5:
                other = held[int(rng.integers(len(held)))]
                changed[place], changed[other] = changed[other], changed[place]
            else:
                changed[place] = int(rng.integers(25))
            state = replay(self.spiel, changed)
            if state is None or state.observation_string(player) != seen:
                continue
            if state.observation_string(witness) != shown:
                self.state = state
                return True
        return False

    def _dealt_at(self, player: int) -> list[int]:
        """Where in the history the cards of a player's hand were dealt."""
        state: Any = replay(self.spiel, ())
        hands: list[list[int]] = [[] for _ in range(self.seats)]
        receiver = 0
        for index, action in enumerate(self.state.history()):
            if state.is_chance_node():
                if index < self.seats * self.cards:
                    receiver = index // self.cards
                hands[receiver].append(index)
            else:
                mover = state.current_player()
                told = state.action_to_string(mover, action).strip("()").split()
                if told[0] != "Reveal":
                    hands[mover].pop(int(told[1]))
                    receiver = mover
            state.apply_action(action)
        return hands[player]

    def draw(self, seat: int) -> Image:
        view, canvas = self.view(seat), Canvas(self.image_size, NIGHT)
        canvas.text(f"Lives {view.lives}", 10, 16, 18, WHITE, "lm")
        canvas.text(f"Hints {view.hints}", 140, 16, 18, WHITE, "lm")
        canvas.text(f"Deck {view.deck}", 270, 16, 18, WHITE, "lm")
        top, tall, discards, bottom = (34, 44, 326, 364) if self.seats == 2 else (32, 30, 342, 369)
        canvas.text("Fireworks", 10, top + tall / 2, 15, WHITE, "lm")
        for place, colour in enumerate(COLOURS):
            x = 92 + 56 * place
            canvas.box(x, top, 46, tall, TINTS[colour], WHITE, 2, 6)
            canvas.text(str(view.fireworks[colour]), x + 23, top + tall / 2, 26, _ink(colour), bold=0.6)
        if self.seats == 2:
            canvas.text("Other's cards, and what the other was told", 10, 94, 14, WHITE, "lm")
            canvas.text("Your cards, and what you were told", 10, 206, 14, WHITE, "lm")
            self._draw_hand(canvas, view.others[0], (14, 104, 74, 60), 14)
            self._draw_hand(canvas, view.own, (14, 216, 74, 60), 14, own=True)
        else:
            self._draw_hands(canvas, view)
        canvas.text("Discards", 10, discards, 14, WHITE, "lm")
        for place, colour in enumerate(COLOURS):
            ranks = "".join(sorted(str(rank) for each, rank in view.discards if each == colour))
            x = 78 + 61 * place
            canvas.box(x, discards - 11, 58, 22, TINTS[colour], None, 1, 3)
            canvas.text(ranks or "-", x + 29, discards, 14 if len(ranks) < 8 else 10, _ink(colour))
        if self.last is not None:
            number = self.player_of(self.last[0]) + 1
            who = "You" if self.last[0] == seat else "Other" if self.seats == 2 else f"Player {number}"
            canvas.text(f"Last: {who}: {self.last[1]}", 10, bottom, 17, WHITE, "lm")
        return canvas.finish()

    def _draw_hands(self, canvas: Canvas, view: View) -> None:
        """A row for each of several hands: the others as they take their turns, then the own one."""
        high = 260 / self.seats
        for row, hand in enumerate((*view.others, view.own)):
            y, tall = 68 + high * row, high - 19
            player = (view.player + row + 1) % self.seats + 1
            canvas.text("You" if row == len(view.others) else f"Player {player}", 10, y + tall / 2, 16, WHITE, "lm")
            canvas.text("told:", 10, y + tall + 8, 13, FAINT, "lm")
            self._draw_hand(canvas, hand, (76, y, 304 / self.cards, tall), 8, own=row == len(view.others))

    def _draw_hand(
        self, canvas: Canvas, hand: tuple[Held, ...], box: tuple[float, float, float, float], gap: float,
        own: bool = False,
    ) -> None:  # fmt: skip
        """A row of cards, with what their owner was told below; `box` is the left edge, the top, the distance from
        card to card and the height."""
        x, y, pitch, tall = box
        wide = pitch - gap
        for place, held in enumerate(hand):
            told_colour, told_rank = held.hinted[0] if held.hinted[0] in COLOURS else "", held.hinted[1]
            colour, label = told_colour, told_rank if told_rank.isdigit() else "?"
            if held.card is not None:
                colour, label = held.card[0], str(held.card[1])
            ink = _ink(colour) if colour else WHITE
            canvas.box(x, y, wide, tall, TINTS[colour] if colour else BACK, WHITE, 2, 7)
            canvas.text(label, x + wide / 2, y + tall / 2, min(34, tall * 0.8), ink, bold=0.8)
            if own:
                canvas.text(f"{place + 1}.", x + 5, y + 12, 14, ink, "lm")
            known = [NAMES[told_colour]] if told_colour else []
            known += [told_rank] if told_rank.isdigit() else []
            below = y + tall + (14 if self.seats == 2 else 8)
            canvas.text(" ".join(known) or "nothing", x + wide / 2, below, 13, WHITE if known else FAINT)
            x += pitch


def _ink(colour: str) -> Colour:
    return INK if colour in "YW" else WHITE

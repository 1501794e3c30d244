"""Hanabi for two: fireworks of five colours, and nobody sees the own cards."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from vlgym.prompts import PromptTemplate
from vlgym.types import Image

from .art import BLUE, GREEN, INK, RED, WHITE, Canvas, Colour
from .hanabi_bot import COLOURS, NAMES, Held, View, choose, read_view
from .spiel import SpielGame, replay

TINTS: dict[str, Colour] = {
    "R": RED, "Y": (235, 180, 20), "G": GREEN, "W": (250, 250, 250), "B": BLUE,
}  # fmt: skip
NIGHT = (44, 48, 66)
ENOUGH = 14
"""Points of a game that count as success."""


class Hanabi(SpielGame):
    """Hanabi for two players, who build five fireworks together and see each other's cards, not their own.

    Goal: play the cards of each colour in the order 1, 2, 3, 4, 5. A point for every card, 25 at most.
    Observation: lives, hints, deck, fireworks and discards; the other's five cards, with what the other has been
        told of each; the own five cards from behind, with what you have been told (384 x 384 pixels by default). The
        line at the bottom is the other's last action. The text tells no card.
    Actions: `play 1` to `play 5`, `discard 1` to `discard 5` (not with 8 hints), `hint red`, `hint 3` and so on: all
        cards of that colour or rank in the other's hand (only with a hint left).
    Reward: 1 for each card that fits; both are paid. A card that does not fit costs one of three lives; the third ends
        the game and takes all points back.
    Endings: terminated by the third lost life, by 25 points, or one turn each after the last card is drawn; truncated
        after 60 turns of a seat.
    Success: the game is over with at least 14 points. `score` is the share of 25.
    Splits: train, val and test differ by seed: the cards and the seat.
    Oracle: a player by rules that uses only what a player may know. Default opponent: the same. registry.yaml has its
        mean score.
    References: Bard et al., The Hanabi Challenge, 2020. OpenSpiel 2.0.2, `hanabi(players=2)`. Drawing, texts and the
        player by rules are this package's.

    Args:
        **kwargs: of `MultiVLEnv`.
    """

    spiel: ClassVar[str] = "hanabi(players=2)"
    hidden_information: ClassVar[bool] = True
    prompt = PromptTemplate(
        version=1, instructions="You are playing Hanabi. {task}\n{format}", turn="{state}Legal actions: {actions}"
    )

    def name_action(self, action: int) -> str:
        """In words, with places from 1."""
        told = self.state.action_to_string(self.state.current_player(), action).strip("()").split()
        if told[0] == "Reveal":
            return f"hint {NAMES[told[-1]] if told[-2] == 'color' else told[-1]}"
        return f"{told[0].lower()} {int(told[1]) + 1}"

    def view(self, seat: int) -> View:
        """What a seat knows."""
        return read_view(self.state.observation_string(self.player_of(seat)))

    def goal(self, seat: int) -> str:
        """The rules."""
        return (
            "Two players build five fireworks together: red, yellow, green, white and blue, each from 1 to 5 in "
            "this order. You see the other's cards, not your own. In your turn play one of your cards, or discard "
            "one, which brings back a hint, or spend a hint to show the other all cards of one colour or one rank "
            "in that hand. Of each colour there are three 1, two 2, two 3, two 4 and one 5. A played card that does "
            "not fit costs a life; when the third life is lost all points are lost. When the deck is empty each "
            "player has one more turn. Your cards are numbered 1 to 5 from the left; a new card comes in at the "
            "right."
        )

    def won(self, seat: int) -> bool:
        """Whether the game is over with enough points."""
        return self.state.is_terminal() and self.state.returns()[0] >= ENOUGH

    def points(self, seat: int) -> float | None:
        """The share of 25 points."""
        return self.state.returns()[0] / 25

    def advise(self, seat: int) -> str | None:
        """What the rules choose."""
        return choose(self.view(seat), self.moves(seat))

    def explain(self, seat: int, action: str) -> str:
        """What was weighed."""
        return f"after looking at the fireworks and at what each of us knows, {action}"

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        """Give a seat other cards that fit every hint it got: what OpenSpiel shows to it stays the same."""
        history = list(self.state.history())
        held = self._dealt_at(self.player_of(seat))
        seen = self.state.observation_string(self.player_of(seat))
        shown = self.state.observation_string(1 - self.player_of(seat))
        for _ in range(30):
            changed = list(history)
            place = held[int(rng.integers(len(held)))]
            if rng.random() < 0.5:
                other = held[int(rng.integers(len(held)))]
                changed[place], changed[other] = changed[other], changed[place]
            else:
                changed[place] = int(rng.integers(25))
            state = replay(self.spiel, changed)
            if state is None or state.observation_string(self.player_of(seat)) != seen:
                continue
            if state.observation_string(1 - self.player_of(seat)) != shown:
                self.state = state
                return True
        return False

    def _dealt_at(self, player: int) -> list[int]:
        """Where in the history the cards of a player's hand were dealt."""
        state: Any = replay(self.spiel, ())
        hands: tuple[list[int], list[int]] = ([], [])
        receiver = 0
        for index, action in enumerate(self.state.history()):
            if state.is_chance_node():
                if len(hands[0]) == 5 and len(hands[1]) < 5 and index < 10:
                    receiver = 1
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
        """One seat's view of the table."""
        view, canvas = self.view(seat), Canvas(self.image_size, NIGHT)
        canvas.text(f"Lives {view.lives}", 10, 16, 18, WHITE, "lm")
        canvas.text(f"Hints {view.hints}", 140, 16, 18, WHITE, "lm")
        canvas.text(f"Deck {view.deck}", 270, 16, 18, WHITE, "lm")
        canvas.text("Fireworks", 10, 56, 15, WHITE, "lm")
        for place, colour in enumerate(COLOURS):
            x, top = 92 + 56 * place, view.fireworks[colour]
            canvas.box(x, 34, 46, 44, TINTS[colour], WHITE, 2, 6)
            canvas.text(str(top), x + 23, 56, 26, _ink(colour), bold=0.6)
        canvas.text("Other's cards, and what the other was told", 10, 94, 14, WHITE, "lm")
        canvas.text("Your cards, and what you were told", 10, 206, 14, WHITE, "lm")
        for place, held in enumerate(view.other):
            self._draw_held(canvas, held, 14 + 74 * place, 104)
        for place, held in enumerate(view.own):
            self._draw_held(canvas, held, 14 + 74 * place, 216, place + 1)
        canvas.text("Discards", 10, 326, 14, WHITE, "lm")
        for place, colour in enumerate(COLOURS):
            ranks = "".join(sorted(str(rank) for each, rank in view.discards if each == colour))
            x = 78 + 61 * place
            canvas.box(x, 315, 58, 22, TINTS[colour], None, 1, 3)
            canvas.text(ranks or "-", x + 29, 326, 14 if len(ranks) < 8 else 10, _ink(colour))
        if self.last is not None:
            who = "You" if self.last[0] == seat else "Other"
            canvas.text(f"Last: {who}: {self.last[1]}", 10, 364, 17, WHITE, "lm")
        return canvas.finish()

    def _draw_held(self, canvas: Canvas, held: Held, x: float, y: float, place: int = 0) -> None:
        told_colour, told_rank = held.hinted[0] if held.hinted[0] in COLOURS else "", held.hinted[1]
        if held.card is not None:
            colour, rank = held.card
            canvas.box(x, y, 60, 60, TINTS[colour], WHITE, 2, 7)
            canvas.text(str(rank), x + 30, y + 30, 34, _ink(colour), bold=0.8)
        else:
            canvas.box(x, y, 60, 60, TINTS[told_colour] if told_colour else (110, 114, 130), WHITE, 2, 7)
            ink = _ink(told_colour) if told_colour else WHITE
            canvas.text(told_rank if told_rank.isdigit() else "?", x + 30, y + 30, 34, ink, bold=0.8)
            canvas.text(f"{place}.", x + 5, y + 12, 14, ink, "lm")
        known = [NAMES[told_colour]] if told_colour else []
        known += [told_rank] if told_rank.isdigit() else []
        canvas.text(" ".join(known) or "nothing", x + 30, y + 74, 13, WHITE if known else (170, 174, 186))


def _ink(colour: str) -> Colour:
    return INK if colour in "YW" else WHITE

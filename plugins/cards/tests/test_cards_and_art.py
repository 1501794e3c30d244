"""Cards, their pictures, and the font."""

from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest
from vlgym_cards.art import FELT, UNITS, WHITE, Canvas, card_sprite, fan, font, wrap
from vlgym_cards.cards import RANKS, SUITS, Card, draw_card, names


def test_symbols_and_values() -> None:
    assert [Card(rank, "H").symbol for rank in RANKS] == ["A", *map(str, range(2, 11)), "J", "Q", "K"]
    assert [Card(rank, "H").value() for rank in (1, 9, 10, 11, 12, 13)] == [1, 9, 10, 10, 10, 10]
    assert [Card(rank, "H").value(faces_as_ten=False) for rank in (10, 11, 12, 13)] == [10, 11, 12, 13]
    assert names([Card(5, "H"), Card(13, "S")]) == ["H5", "SK"]


@pytest.mark.parametrize(("rank", "suit"), [(0, "H"), (14, "H"), (5, "X")])
def test_there_are_no_other_cards(rank: int, suit: str) -> None:
    with pytest.raises(ValueError, match="No such card"):
        Card(rank, suit)


def test_draws_are_uniform_over_52_cards_and_a_function_of_the_generator() -> None:
    rng = np.random.default_rng(0)
    drawn = [str(draw_card(rng)) for _ in range(5200)]
    counts = np.array([drawn.count(name) for name in set(drawn)])
    assert len(counts) == 52
    assert counts.min() > 60  # expected 100, standard deviation 10
    assert counts.max() < 140
    again = np.random.default_rng(0)
    assert [str(draw_card(again)) for _ in range(20)] == drawn[:20]


@pytest.mark.parametrize(("width", "height"), [(70, 98), (67, 93)])
def test_every_two_cards_look_different_in_the_corner_and_in_the_middle(width: int, height: int) -> None:
    cards = [Card(rank, suit) for rank in RANKS for suit in SUITS]
    pictures = {card: np.asarray(card_sprite(card, width, height)[0]).astype(int) for card in cards}
    corner = (slice(0, round(height * 0.45)), slice(0, round(width * 0.42)))
    middle = (slice(round(height * 0.25), height), slice(round(width * 0.25), width))
    for a, b in combinations(cards, 2):
        difference = np.abs(pictures[a] - pictures[b]).max(axis=2) > 80
        assert difference[corner].sum() >= 10, (a, b)
        if a.rank != b.rank:
            assert difference[middle].sum() >= 40, (a, b)


def test_the_rank_is_written_large_enough_to_read() -> None:
    for rank in RANKS:
        picture = np.asarray(card_sprite(Card(rank, "S"), 67, 93)[0]).astype(int)
        rows = np.nonzero((picture[35:, 20:64].max(axis=2) < 100).any(axis=1))[0]
        assert rows.max() - rows.min() + 1 >= 20, f"the large {rank} is under 20 pixels high"


def test_the_ink_of_a_card_stays_on_the_card() -> None:
    for rank in RANKS:
        picture = np.asarray(card_sprite(Card(rank, "H"), 70, 98)[0]).astype(int)
        frame = np.concatenate([picture[2, 4:-4], picture[-3, 4:-4], picture[4:-4, 2], picture[4:-4, -3]])
        assert (frame.min(axis=1) > 200).all(), f"rank {rank} touches the edge"


def test_a_card_face_differs_from_the_back_and_from_the_felt() -> None:
    face = np.asarray(card_sprite(Card(7, "H"), 70, 98)[0])
    back = np.asarray(card_sprite(None, 70, 98)[0])
    assert (face != back).any(axis=2).mean() > 0.5
    assert ((face == FELT).all(axis=2)).sum() == 0


@pytest.mark.parametrize("size", [(300, 300), (448, 448), (56, 112), (224, 224), (600, 300), (16, 16)])
def test_a_canvas_finishes_in_the_size_that_was_asked_for(size: tuple[int, int]) -> None:
    canvas = Canvas(size, FELT)
    canvas.card(Card(1, "S"), 100, 100, 70, 98)
    image = canvas.finish()
    assert image.shape == (*size, 3)
    assert image.dtype == np.uint8
    assert tuple(image[0, 0]) == FELT
    middle = image[size[0] // 2, size[1] * 125 // UNITS]
    assert tuple(middle) != FELT


def test_a_copy_of_a_canvas_is_drawn_on_alone() -> None:
    canvas = Canvas((300, 300), FELT)
    canvas.copy().card(Card(1, "S"), 0, 0, 70, 98)
    assert (canvas.finish() == FELT).all()


def test_a_fan_keeps_its_cards_inside_the_row() -> None:
    assert fan(1, 5, 290, 70, 4) == [5]
    assert fan(4, 5, 290, 70, 4) == pytest.approx([5, 77 + 4 / 3, 151 + 2 / 3, 225])
    for count in range(2, 23):
        edges = fan(count, 5, 290, 70, 4)
        assert len(edges) == count
        assert edges[-1] + 70 <= 295 + 1e-9
        assert edges == sorted(set(edges))


def test_wrapping_breaks_between_words_only_and_keeps_every_word() -> None:
    words = [
        "(",
        "10",
        "+",
        "10",
        ")",
        "*",
        "(",
        "10",
        "-",
        "10",
        ")",
        "/",
        "(",
        "3",
        "+",
        "4",
        ")",
        "-",
        "10",
        "+",
        "10",
    ]
    lines = wrap(words, 200, 26)
    assert " ".join(lines).split() == words
    assert len(lines) > 1
    assert all(font(26).getlength(line) <= 200 for line in lines)


def test_the_font_ships_with_its_licence_and_draws_every_symbol() -> None:
    folder = files("vlgym_cards") / "fonts"
    assert "Bitstream Vera Fonts Copyright" in (folder / "LICENSE-DejaVu.txt").read_text()
    missing = bytes(font(40).getmask("\u4e00"))
    for symbol in "0123456789AJQK+-*/()=\u2660\u2663\u2665\u2666TargetCurrentDealerPlayerFormula:":
        assert bytes(font(40).getmask(symbol)) != missing, symbol


def test_felt_and_paper_have_the_published_colours() -> None:
    assert FELT == (0x35, 0x65, 0x4D)
    assert WHITE == (255, 255, 255)

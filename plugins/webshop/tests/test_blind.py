"""The player that sees no picture: it shops from the instruction and the list of clicks, without the shop."""

from __future__ import annotations

import random

from vlgym_webshop.blind import Shopper

WISH = "You are shopping.\nInstruction: i want a dark blue, extra large shirt, and price lower than 40.00 dollars\n"
FIXED = tuple(
    f"click[{name}]" for name in ("back to search", "< prev", "description", "features", "reviews", "buy now")
)
RESULTS = ("click[back to search]", "click[next >]", "click[b0aaaaaaaa]", "click[b0bbbbbbbb]")
PLAIN = (*FIXED, "click[red]", "click[small]")
RIGHT = (*FIXED, "click[blue]", "click[dark blue]", "click[extra large]", "click[arge]")


def test_it_looks_at_every_product_of_the_page_and_buys_the_one_with_the_most_fitting_options() -> None:
    player = Shopper(random.Random(0))
    steps = [
        (("search[dark blue shirt]",), "search[dark blue shirt]"),
        (RESULTS, "click[b0aaaaaaaa]"),
        (PLAIN, "click[< prev]"),
        (RESULTS, "click[b0bbbbbbbb]"),
        (RIGHT, "click[< prev]"),
        (RESULTS, "click[b0bbbbbbbb]"),
        (RIGHT, "click[blue]"),
        (RIGHT, "click[dark blue]"),
        (RIGHT, "click[extra large]"),
        (RIGHT, "click[buy now]"),
    ]
    assert [player.choose(WISH, legal) for legal, _ in steps] == [action for _, action in steps]

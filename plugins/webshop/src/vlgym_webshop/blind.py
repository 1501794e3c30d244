"""What can be bought in WebShop without the picture: the text lists a ready-made query and every option's value."""

from __future__ import annotations

import random
import re

from vlgym.blind import BlindPlayer

_INSTRUCTION = re.compile(r"Instruction: (.*)")
_PRODUCT = re.compile(r"click\[[b0-9][0-9a-z]{9}\]")
_WORD = re.compile(r"[a-z0-9]+")
_FIXED = {"back to search", "< prev", "next >", "description", "features", "reviews", "attributes", "buy now"}


class Shopper(BlindPlayer):
    """Types the suggested query, opens every product of the first page, and buys the one with the most option values
    that the instruction names, with these options."""

    name = "first page's options"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._seen: dict[str, int] = {}
        self._open = ""
        self._chosen: set[str] = set()

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        """Return the next search or click."""
        search = next((action for action in legal if action.startswith("search[")), "")
        if search:
            return search
        products = [action for action in legal if _PRODUCT.fullmatch(action)]
        if products:
            return self._pick_product(products)
        if self._open:
            return self._look_at_product(text, legal)
        return "click[back to search]"

    def _pick_product(self, products: list[str]) -> str:
        """The first product that was not seen; then the one with the most fitting options, the earliest of equals."""
        self._open = next((product for product in products if product not in self._seen), "")
        self._open = self._open or max(products, key=self._seen.__getitem__)
        return self._open

    def _look_at_product(self, text: str, legal: tuple[str, ...]) -> str:
        """Count the fitting options and go back; at the second visit choose them and buy."""
        fitting = list_fitting(text, legal)
        if self._open not in self._seen:
            self._seen[self._open] = len(fitting)
            return "click[< prev]"
        left = [action for action in fitting if action not in self._chosen]
        if left:
            self._chosen.add(left[0])
            return left[0]
        return "click[buy now]"


def list_fitting(text: str, legal: tuple[str, ...]) -> list[str]:
    """Return the clicks on option values all of whose words the instruction holds, in a row; the longest value last,
    because a later choice replaces an earlier one."""
    found = _INSTRUCTION.search(text)
    wish = f" {' '.join(_WORD.findall(found[1].lower()))} " if found else ""
    values = {action: action.removeprefix("click[").removesuffix("]") for action in legal}
    fitting = [
        action
        for action, value in values.items()
        if value not in _FIXED and (words := _WORD.findall(value)) and f" {' '.join(words)} " in wish
    ]
    return sorted(fitting, key=lambda action: len(values[action]))

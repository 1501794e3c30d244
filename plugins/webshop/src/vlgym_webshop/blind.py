"""Blind players of WebShop: the text lists a ready-made query and every option's value."""

from __future__ import annotations

import random
import re

from vlgym.sight.blind import BlindPlayer

_INSTRUCTION = re.compile(r"Instruction: (.*)")
_PRODUCT = re.compile(r"click\[[b0-9][0-9a-z]{9}\]")
_WORD = re.compile(r"[a-z0-9]+")
_PRICE = re.compile(
    r",? (?:and )?(?:price lower|for less|under|priced below|that costs|with a budget|below|less than) .*"
)
_PHRASE_WORD = re.compile(r"[a-z0-9][a-z0-9.'&/x-]*[a-z0-9]|[a-z0-9]")
_FILLER_WORDS = (
    "a an the i i'm i'd i've it is in of with and as at for to has that size width long memory bottle flavor scent "
    "shade measuring band want need would like looking find me my please can you could get buy show where do sell "
    "search help order am we us"
)
_FILLERS = frozenset(_FILLER_WORDS.split())
TRIES = 42
"""Values of options that are tried at most: 50 turns, less a search, a product, the purchase and some more."""

LONGEST_VALUE = 4
"""Words of the longest value that is tried."""

_FIXED = {"back to search", "< prev", "next >", "description", "features", "reviews", "buy now"}


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
    match = _INSTRUCTION.search(text)
    wish = f" {' '.join(_WORD.findall(match[1].lower()))} " if match else ""
    values = {action: action.removeprefix("click[").removesuffix("]") for action in legal}
    fitting = [
        action
        for action, value in values.items()
        if value not in _FIXED and (words := _WORD.findall(value)) and f" {' '.join(words)} " in wish
    ]
    return sorted(fitting, key=lambda action: len(values[action]))


class Guesser(BlindPlayer):
    """Searches for the words of the instruction, opens the product that is listed first, clicks every row of words of
    the instruction that may be an option's value, and buys."""

    name = "guesses values"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._tries: list[str] | None = None

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        """Return the next search or click."""
        wish = read_wish(text)
        if any(action.startswith("search[") for action in legal):
            words = [word for word in _PHRASE_WORD.findall(wish) if word not in _FILLERS]
            return f"search[{' '.join(words[:12]) or 'gift'}]"
        products = [action for action in legal if _PRODUCT.fullmatch(action)]
        if products:
            return products[0]
        if "click[buy now]" not in legal:
            return "click[back to search]"
        if self._tries is None:
            self._tries = [f"click[{value}]" for value in list_phrases(wish)[:TRIES]]
        return self._tries.pop(0) if self._tries else "click[buy now]"


def read_wish(text: str) -> str:
    """Return the instruction in lower case, without its price limit; empty where there is none."""
    match = _INSTRUCTION.search(text)
    return _PRICE.sub("", match[1].lower()) if match else ""


def list_phrases(wish: str) -> list[str]:
    """Return the rows of words of a wish, up to four words between two commas, that neither begin nor end with a word
    that says nothing; shorter ones first, because a later choice replaces an earlier one."""
    phrases: dict[str, int] = {}
    for part in wish.split(","):
        words = _PHRASE_WORD.findall(part)
        for size in range(1, LONGEST_VALUE + 1):
            for start in range(len(words) - size + 1):
                row = words[start : start + size]
                if not {row[0], row[-1]} & _FILLERS:
                    phrases.setdefault(" ".join(row), size)
    return sorted(phrases, key=phrases.__getitem__)

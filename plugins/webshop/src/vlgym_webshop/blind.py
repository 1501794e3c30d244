"""Blind players of WebShop: the text lists a ready-made query and every option's value."""

import random
import re

from vlgym.sight.blind import BlindPlayer

_INSTRUCTION = re.compile(r"Instruction: (.*)")
_PRODUCT = re.compile(r"click\[[b0-9][0-9a-z]{9}\]")
_WORD = re.compile(r"[a-z0-9]+")
_PRICE = re.compile(
    r",? (?:and )?(?:price lower|for less|under|priced below|that costs|with a budget|below"
    r"|less than) .*"
)
_PHRASE_WORD = re.compile(r"[a-z0-9][a-z0-9.'&/x-]*[a-z0-9]|[a-z0-9]")
_FILLER_WORDS = (
    "a an the i i'm i'd i've it is in of with and as at for to has that size width long memory bottle "
    "flavor scent shade measuring band want need would like looking find me my please can you could "
    "get buy show where do sell search help order am we us"
)
_FILLERS = frozenset(_FILLER_WORDS.split())
TRIES = 42  # option values that are tried: 50 turns, less search, product, purchase and some more
LONGEST_VALUE = 4  # words of the longest value that is tried
_FIXED = {"back to search", "< prev", "next >", "description", "features", "reviews", "buy now"}


class Shopper(BlindPlayer):
    """Opens every product of the suggested query's first page, and buys the most fitting one.

    It has the most option values that the instruction names; these options are chosen.
    """

    name = "first page's options"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._seen: dict[str, int] = {}
        self._open = ""
        self._chosen: set[str] = set()

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        search = next((action for action in legal if action.startswith("search[")), "")
        if search:
            return search

        # The first product that was not seen; then that with the most fitting options.
        products = [action for action in legal if _PRODUCT.fullmatch(action)]
        if products:
            unseen = (product for product in products if product not in self._seen)
            self._open = next(unseen, "") or max(products, key=self._seen.__getitem__)
            return self._open
        if not self._open:
            return "click[back to search]"

        # The first visit counts the fitting options; the second chooses them and buys.
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
    """Return the clicks on option values in the instruction, the longest last: a later choice counts."""
    match = _INSTRUCTION.search(text)
    wish = f" {' '.join(_WORD.findall(match[1].lower()))} " if match else ""
    values = {action: action.removeprefix("click[").removesuffix("]") for action in legal}
    rows = {action: " ".join(_WORD.findall(value)) for action, value in values.items()}
    named = [action for action, row in rows.items() if row and f" {row} " in wish]
    fitting = [action for action in named if values[action] not in _FIXED]
    return sorted(fitting, key=lambda action: len(values[action]))


class Guesser(BlindPlayer):
    """Searches for the instruction's words, opens the first product, guesses its options, and buys.

    A guess is a row of words of the instruction that may be an option's value.
    """

    name = "guesses values"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._tries: list[str] | None = None

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        match = _INSTRUCTION.search(text)
        wish = _PRICE.sub("", match[1].lower()) if match else ""
        if any(action.startswith("search[") for action in legal):
            words = [word for word in _PHRASE_WORD.findall(wish) if word not in _FILLERS]
            return f"search[{' '.join(words[:12]) or 'gift'}]"
        products = [action for action in legal if _PRODUCT.fullmatch(action)]
        if products:
            return products[0]
        if "click[buy now]" not in legal:
            return "click[back to search]"

        # On the product's page the options are guessed, then it is bought.
        if self._tries is None:
            self._tries = [f"click[{value}]" for value in list_phrases(wish)[:TRIES]]
        return self._tries.pop(0) if self._tries else "click[buy now]"


def list_phrases(wish: str) -> list[str]:
    """Return the rows of up to four words between commas, fillers at their ends excluded, short first."""
    phrases: dict[str, int] = {}
    for part in wish.split(","):
        words = _PHRASE_WORD.findall(part)
        for size in range(1, LONGEST_VALUE + 1):
            for start in range(len(words) - size + 1):
                row = words[start : start + size]
                if not {row[0], row[-1]} & _FILLERS:
                    phrases.setdefault(" ".join(row), size)
    return sorted(phrases, key=phrases.__getitem__)

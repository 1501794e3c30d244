"""The reward of a purchase, exactly as in WebShop's code (princeton-nlp/WebShop, engine/goal.py).

    r = r_type * (n_att + n_opt + [price <= price_upper]) / (|attributes| + |options| + 1)

- n_att: a goal attribute counts if any attribute of the product has token_set_ratio > 85 with it,
  or if it is a part of the lower-cased title, joined bullets or description.
- n_opt: a goal option counts if any chosen option value has token_set_ratio > 85 with it, both
  reduced to their colour word if any.
- title_score = |nouns of the bought name that the goal's name has| / |nouns of the goal's name,
  repeats counted|; 0.2 if it has none.
- r_type: 1 for the same query, two shared category levels or title_score > 0.2, else 0.5. Then
  title_score < 0.1 makes it 0.1, and title_score 0 makes it 0, even with the same query or category.

Published, nouns are the words that spaCy's en_core_web_sm tags NOUN or PROPN. That model is a
download, so by default a rule stands in for it, the same on every machine: every word of letters is
a noun unless it is in a list of other words or ends like an adjective or adverb.

Yao et al., WebShop, NeurIPS 2022.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz, utils

from vlgym.errors import UserError, check_choice

from .catalogue.generate import load_words
from .catalogue.records import Goal, Product

Tagger = Callable[[str], tuple[str, ...]]  # name of a product -> its nouns, in order, with repeats
MODEL = "en_core_web_sm"
_WORD = re.compile(r"[a-z][a-z'\-]*[a-z]")
_LISTS = ("function_words", "adjectives", "colours", "verbs", "units")
_NOT_NOUNS = frozenset(word for name in _LISTS for word in load_words(name))
_ENDINGS = (
    "able", "ible", "ful", "less", "ous", "ive", "ish", "ly", "proof", "resistant", "friendly", "sized",
)  # fmt: skip
_NOUNS_ALL_THE_SAME = frozenset(load_words("nouns"))


@lru_cache(maxsize=4096)
def tag_by_rule(name: str) -> tuple[str, ...]:
    """Return the nouns of a product name by the rule."""
    words = _WORD.findall(name.lower())
    others = {word for word in words if word in _NOT_NOUNS or word.endswith(_ENDINGS)}
    return tuple(word for word in words if word in _NOUNS_ALL_THE_SAME or word not in others)


def load_tagger(choice: str, generated: bool) -> tuple[str, Tagger]:
    """Return the name of the tagger used (`rules` or `spacy`) and the tagger.

    `auto` is spaCy's model for WebShop's files where it is installed, else the rule, so that scores of
    generated catalogues agree everywhere. A `UserError` says that `spacy` lacks its model.
    """
    check_choice("nouns", choice, ("auto", "rules", "spacy"))
    if choice == "rules" or (choice == "auto" and generated):
        return "rules", tag_by_rule
    try:
        return "spacy", _load_spacy()
    except (ImportError, OSError) as error:
        if choice == "auto":
            return "rules", tag_by_rule
        raise UserError(
            f"nouns='spacy' needs spaCy and its model {MODEL} ({error}). Install them with "
            f"`pip install spacy` and `python -m spacy download {MODEL}`, or use nouns='rules'."
        ) from error


@lru_cache(maxsize=1)
def _load_spacy() -> Tagger:
    import spacy

    pipeline = spacy.load(MODEL, disable=["ner", "parser", "lemmatizer"])

    @lru_cache(maxsize=4096)
    def tag(name: str) -> tuple[str, ...]:
        return tuple(token.text.lower() for token in pipeline(name) if token.pos_ in ("NOUN", "PROPN"))

    return tag


COLOURS = load_words("published_colours")  # in order: `dark navy blue` is `blue`
THRESHOLD = 85  # token_set_ratio (0 to 100, rounded) must exceed this


def normalize_colour(text: str) -> str:
    """Return the first colour word in `text`, also inside other words, or `text`."""
    return next((colour for colour in COLOURS if colour in text), text)


@dataclass(frozen=True)
class Score:
    """A purchase, judged."""

    reward: float
    attributes: float  # share of the goal's attributes met
    options: float  # share of the goal's options met; 1 where the goal has none
    type: float  # r_type, one of 0, 0.1, 0.5, 1
    price: float  # 1 if the price is within the limit, else 0
    title: float  # title_score


def score_purchase(product: Product, chosen: Mapping[str, str], goal: Goal, tagger: Tagger = tag_by_rule) -> Score:
    """Judge the purchase of `product` with the `chosen` options (name -> value)."""
    attributes = count_attributes(product, goal.attributes)
    options = count_options(chosen.values(), goal.options)
    price = int(product.price <= goal.price_upper)
    title = title_score(product.title, goal.title, tagger)
    kind = type_score(product, goal, title)

    # The formula, and its parts as shares.
    terms = len(goal.attributes) + len(goal.options) + 1
    return Score(
        reward=kind * (attributes + options + price) / terms,
        attributes=attributes / len(goal.attributes) if goal.attributes else 1.0,
        options=options / len(goal.options) if goal.options else 1.0,
        type=kind,
        price=float(price),
        title=title,
    )


def count_attributes(product: Product, wanted: Iterable[str]) -> int:
    """Return how many of the wanted attributes the product has."""
    texts = (product.title.lower(), " ".join(product.bullets).lower(), product.description.lower())

    def has(attribute: str) -> bool:
        alike = any(is_alike(own, attribute) for own in product.attributes)
        return alike or any(attribute in text for text in texts)

    return sum(map(has, wanted))


def count_options(chosen: Iterable[str], wanted: Iterable[str]) -> int:
    """Return how many of the wanted option values are among the chosen ones."""
    values = [normalize_colour(value) for value in chosen]
    return sum(any(is_alike(value, normalize_colour(option)) for value in values) for option in wanted)


def title_score(bought: str, wanted: str, tagger: Tagger = tag_by_rule) -> float:
    """Return the share of the wanted name's nouns that the bought name has."""
    nouns = tagger(wanted)
    return len(set(tagger(bought)) & set(nouns)) / len(nouns) if nouns else 0.2


def type_score(product: Product, goal: Goal, title: float) -> float:
    """Return r_type from query, category levels and the title score."""
    levels = {level.strip() for level in product.product_category.split("›")}
    shared = levels & {level.strip() for level in goal.product_category.split("›")}
    if title == 0.0:
        return 0.0
    if title < 0.1:
        return 0.1
    return 1.0 if product.query == goal.query or len(shared) >= 2 or title > 0.2 else 0.5


def is_alike(one: str, other: str) -> bool:
    """True if thefuzz's token_set_ratio of two texts exceeds 85."""
    return round(fuzz.token_set_ratio(one, other, processor=utils.default_process)) > THRESHOLD

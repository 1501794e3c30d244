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

Yao et al., WebShop, NeurIPS 2022.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rapidfuzz import fuzz, utils

from .catalogue.records import Goal, Product
from .catalogue.taxonomy import load_words
from .nouns import Tagger, tag_by_rule

COLOURS = load_words("published_colours")
"""The published words in their order: `dark navy blue` is `blue`, `shredded` is `red`."""
THRESHOLD = 85  # token_set_ratio (0 to 100, rounded) must exceed this


def normalize_colour(text: str) -> str:
    """Return the first colour word in `text`, also inside other words, or `text`."""
    return next((colour for colour in COLOURS if colour in text), text)


@dataclass(frozen=True)
class Score:
    """A purchase, judged.

    Attributes:
        attributes: share of the goal's attributes met.
        options: share of the goal's options met; 1 where the goal has none.
        type: r_type, one of 0, 0.1, 0.5, 1.
        price: 1 if the price is within the limit, else 0.
    """

    reward: float
    attributes: float
    options: float
    type: float
    price: float
    title: float


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

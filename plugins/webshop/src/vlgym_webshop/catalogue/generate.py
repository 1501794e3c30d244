"""Products from a seed: product `i` of seed `s` is the same in a catalogue of any size, on any machine.

Brands and texts are invented. Nothing here looks at goals; those are written in `wishes`.
"""

from __future__ import annotations

import hashlib
import random
import string

from .records import Product, Review
from .taxonomy import Kind, load_taxonomy

VERSION = 1
"""Bump it with every change that alters a generated product or goal: the cached catalogue is then made again."""

_BRAND_STARTS = (
    "Al", "Bel", "Bram", "Cor", "Dal", "El", "Fen", "Gar", "Hol", "Ister", "Jun", "Kel", "Lor", "Mar", "Nor", "Oak",
    "Pell", "Quin", "Ros", "Sel", "Tam", "Ulv", "Ver", "Wex",
)  # fmt: skip
_BRAND_ENDS = (
    "bury", "dane", "ette", "ford", "gate", "holm", "ique", "kin", "lyn", "mere", "ora", "ric", "sen", "ton", "vale",
    "wick",
)  # fmt: skip
_SERIES = (
    "Aero", "Bay", "Cedar", "Dune", "Echo", "Fern", "Glade", "Harbor", "Iris", "Juniper", "Kite", "Lark", "Meadow",
    "North", "Opal", "Prairie", "Quest", "Ridge", "Summit", "Trail", "Umber", "Vista", "Willow", "Zephyr",
)  # fmt: skip
_TITLES = (
    "{brand} {series} {material} {head}, {features}, for {use}",
    "{brand} {head} - {material}, {features} - {use}",
    "{brand} {series} {head} for {use} | {features} | {material}",
    "{features} {material} {head} by {brand}, {series} Collection, {use}",
)
_OPENINGS = (
    "The {brand} {series} {head} was designed for {use}.",
    "Meet the {series}, {brand}'s answer in {material} to everything that {use} asks for.",
    "{brand} has been making things for {use} for years, and the {series} {head} shows it.",
    "When we drew the {series} {head}, we thought of {use} first.",
)
_CLOSINGS = (
    "Not happy? Send it back within thirty days.",
    "Packed in plain recycled card.",
    "A small shop's favourite since its first season.",
    "Makes a thoughtful present, too.",
    "Every piece is checked by hand before it leaves us.",
)
_EXTRA_BULLETS = (
    "{material} quality that you can see and feel.",
    "Made for {use}.",
    "Part of the {series} line by {brand}.",
    "Questions? Our service answers within a day.",
)
_REVIEWS = (
    (5, "Just what I hoped for", "I ordered it for {use} and could not be happier."),
    (5, "Would buy again", "Second one from {brand}; the quality is still there."),
    (4, "Very good", "The {material} is nicer than in the pictures. Delivery took a while."),
    (4, "Solid choice", "Does what it says. I took one star off for the plain box."),
    (3, "It is fine", "Good enough for {use}, though I expected a little more."),
    (3, "Mixed feelings", "Looks great, but the colour is not quite as shown."),
    (2, "Not for me", "It did not suit me, so I sent it back. The refund was quick."),
)
CONTRADICTIONS = (("slim fit", "loose fit"), ("long sleeve", "short sleeve"), ("machine washable", "hand washable"))
_LETTERS = string.digits + string.ascii_uppercase


def generate_product(index: int, seed: int = 0) -> Product:
    """Return product `index` of the catalogue `seed`."""
    kinds = load_taxonomy().kinds
    return write_product(random.Random(f"webshop product {seed} {index}"), kinds[index % len(kinds)], index, seed)


def write_product(rng: random.Random, kind: Kind, index: int, seed: int) -> Product:
    """Return a product of a kind, all of whose texts and figures are drawn from `rng`; its number is `index`'s."""
    taxonomy = load_taxonomy()
    words = {
        "brand": rng.choice(_BRAND_STARTS) + rng.choice(_BRAND_ENDS),
        "series": rng.choice(_SERIES),
        "material": rng.choice(kind.materials),
        "head": rng.choice(kind.heads),
        "use": rng.choice(kind.uses),
    }
    attributes = _attributes(rng, kind)
    words["features"] = ", ".join(text.title() for text in attributes[: rng.randint(1, 2)])
    title = rng.choice(_TITLES).format(**words)
    bullets = [f"{text.capitalize()}: {taxonomy.sentences[text]}" for text in attributes]
    bullets.insert(rng.randint(0, len(bullets)), rng.choice(_EXTRA_BULLETS).format(**words))
    opening = rng.choice(_OPENINGS).format(
        **{**words, "head": words["head"].lower(), "use": words["use"].lower(), "material": words["material"].lower()}
    )
    mentions = rng.sample(attributes, min(2, len(attributes)))
    description = f"{opening} {' '.join(taxonomy.sentences[text] for text in mentions)} {rng.choice(_CLOSINGS)}"
    price = _price(rng, kind)
    reviews = tuple(
        Review(
            stars,
            headline,
            text.format(**{**words, "material": words["material"].lower(), "use": words["use"].lower()}),
        )
        for stars, headline, text in rng.sample(_REVIEWS, rng.randint(2, 4))
    )
    rating = sum(review.stars for review in reviews) / len(reviews)
    return Product(
        asin=_asin(index, seed),
        title=title,
        description=description,
        bullets=tuple(bullets),
        category=kind.category,
        query=kind.query,
        product_category=kind.path,
        options=_options(rng, kind),
        attributes=attributes,
        price=price,
        price_tag=f"${price:.2f}",
        rating=f"{rating:.1f} out of 5",
        reviews=reviews,
        picture=kind.picture,
    )


def _attributes(rng: random.Random, kind: Kind) -> tuple[str, ...]:
    """Return three to five attributes that do not contradict each other."""
    chosen: list[str] = []
    wanted = rng.randint(3, 5)
    for text in rng.sample(kind.attributes, len(kind.attributes)):
        if len(chosen) < wanted and not any(text in pair and set(pair) & set(chosen) for pair in CONTRADICTIONS):
            chosen.append(text)
    return tuple(chosen)


def _price(rng: random.Random, kind: Kind) -> float:
    """Return a price in dollars that ends in .99, .95, .49 or .00; low prices are more frequent."""
    low, high = kind.price
    whole = int(low + (high - low) * rng.random() ** 1.6)
    return whole + rng.choice((0.99, 0.99, 0.95, 0.49, 0.0))


def _options(rng: random.Random, kind: Kind) -> dict[str, tuple[str, ...]]:
    """Return three to six values for each axis, in the axis's own order."""
    options = {}
    for axis, values in kind.axes.items():
        chosen = set(rng.sample(values, min(len(values), rng.randint(3, 6))))
        options[axis] = tuple(value for value in values if value in chosen)
    return options


def _asin(index: int, seed: int) -> str:
    """Return `B0`, four characters of a hash and four that count: unique up to 36**4 (1,679,616) products."""
    digest = int.from_bytes(hashlib.sha256(f"{seed} {index}".encode()).digest()[:6], "big")
    return "B0" + _base36(digest, 4) + _base36((index * 1_000_003 + 77_777) % 36**4, 4)


def _base36(number: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, 36)
        digits = _LETTERS[digit] + digits
    return digits

"""Products from a seed: product `i` of seed `s` is the same in a catalogue of any size, on any machine.

Kinds of product with attributes, options and sentences are read from taxonomy.yaml and phrases.yaml.
Brands and texts are invented. Nothing here looks at goals; those are written in `wishes`.
"""

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from vlgym.registry.limited_yaml import read_yaml

from .records import Product, Review

VERSION = 1  # bump it with every change of a product or goal: catalogues are made again

CONTRADICTIONS = (
    ("slim fit", "loose fit"), ("long sleeve", "short sleeve"), ("machine washable", "hand washable"),
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One kind of product."""

    name: str
    picture: str  # drawing that shows it
    category: str
    path: str  # category levels joined by ` › `
    query: str  # finds it
    heads: tuple[str, ...]  # nouns that end a title
    materials: tuple[str, ...]
    uses: tuple[str, ...]  # words that may follow `for`
    price: tuple[float, float]  # lowest and highest, in dollars
    attributes: tuple[str, ...]
    axes: Mapping[str, tuple[str, ...]]  # option name -> all values; a product offers some


@dataclass(frozen=True)
class Taxonomy:
    """All kinds; for each attribute its sentence; the attributes that stand before the noun."""

    kinds: tuple[Kind, ...]
    sentences: Mapping[str, str]
    before: frozenset[str]

    def kind_of(self, index: int) -> Kind:
        """Return the kind of product, or of group of products, `index`; kinds take turns."""
        return self.kinds[index % len(self.kinds)]


@cache
def load_data(name: str) -> Any:
    """Return the content of a YAML file of the package."""
    return read_yaml(resources.files("vlgym_webshop").joinpath(name).read_text("utf-8"))


def load_words(name: str) -> tuple[str, ...]:
    """Return a list of words.yaml."""
    return tuple(load_data("words.yaml")[name].split())


@cache
def load_taxonomy() -> Taxonomy:
    """Return the taxonomy that ships with the package."""
    data = load_data("catalogue/taxonomy.yaml")
    kinds = []
    for entry in data["types"]:
        fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items()}
        colours, options = fields.pop("colors"), [data["options"][name] for name in fields.pop("options")]
        axes = {"color": tuple(data["colors"][colours])} if colours else {}
        axes |= {option["axis"]: tuple(option["values"]) for option in options}
        kinds.append(Kind(**fields, axes=axes))

    # A phrase has some attributes before the noun, others after `with`.
    before, after = data["attributes"]["before"], data["attributes"]["with"]
    return Taxonomy(tuple(kinds), {**before, **after}, frozenset(before))


def generate_product(index: int, seed: int = 0) -> Product:
    """Return product `index` of the catalogue `seed`."""
    rng = random.Random(f"webshop product {seed} {index}")
    return write_product(rng, load_taxonomy().kind_of(index), index, seed)


def write_product(rng: random.Random, kind: Kind, index: int, seed: int) -> Product:
    """Return a product of a kind, with all texts and figures drawn from `rng`."""
    sentences, phrases = load_taxonomy().sentences, load_data("catalogue/phrases.yaml")
    words = {
        "brand": rng.choice(phrases["brand_starts"]) + rng.choice(phrases["brand_ends"]),
        "series": rng.choice(phrases["series"]),
        "material": rng.choice(kind.materials),
        "head": rng.choice(kind.heads),
        "use": rng.choice(kind.uses),
    }
    small = {**words, **{name: words[name].lower() for name in ("head", "use", "material")}}

    # Three to five attributes, of which the title names one or two and the bullets all.
    attributes = choose_compatible(kind.attributes, rng.randint(3, 5), rng)
    words["features"] = ", ".join(text.title() for text in attributes[: rng.randint(1, 2)])
    title = rng.choice(phrases["titles"]).format(**words)
    bullets = [f"{text.capitalize()}: {sentences[text]}" for text in attributes]
    place = rng.randint(0, len(bullets))
    bullets.insert(place, rng.choice(phrases["bullets"]).format(**words))

    # The description mentions two of them.
    opening = rng.choice(phrases["openings"]).format(**small)
    mentions = rng.sample(attributes, min(2, len(attributes)))
    middle = " ".join(sentences[text] for text in mentions)
    description = f"{opening} {middle} {rng.choice(phrases['closings'])}"

    # Prices end in .99, .95, .49 or .00; low ones are more frequent.
    low, high = kind.price
    dollars = int(low + (high - low) * rng.random() ** 1.6)
    price = dollars + rng.choice((0.99, 0.99, 0.95, 0.49, 0.0))
    drawn = rng.sample(phrases["reviews"], rng.randint(2, 4))
    reviews = tuple(Review(stars, headline, text.format(**small)) for stars, headline, text in drawn)
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


def choose_compatible(attributes: tuple[str, ...], most: int, rng: random.Random) -> tuple[str, ...]:
    """Return attributes in a drawn order, of which no two contradict each other."""
    chosen: list[str] = []
    for text in rng.sample(attributes, len(attributes)):
        if not any(text in pair and set(pair) & set(chosen) for pair in CONTRADICTIONS):
            chosen.append(text)
    return tuple(chosen[:most])


def _options(rng: random.Random, kind: Kind) -> dict[str, tuple[str, ...]]:
    """Return three to six values for each axis, in the axis's order."""
    options = {}
    for axis, values in kind.axes.items():
        chosen = set(rng.sample(values, min(len(values), rng.randint(3, 6))))
        options[axis] = tuple(value for value in values if value in chosen)
    return options


def _asin(index: int, seed: int) -> str:
    """Return `B0`, four characters of a hash and four that count: unique up to 1,679,616 products."""
    digest = int.from_bytes(hashlib.sha256(f"{seed} {index}".encode()).digest()[:6], "big")
    numbers = digest, index * 1_000_003 + 77_777
    return "B0" + "".join(np.base_repr(number % 36**4, 36).zfill(4) for number in numbers)

"""The two records of the shop: a product and a goal. Plain frozen data, to and from JSON."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Review:
    """A customer's review.

    Attributes:
        stars: 1 to 5.
        title: headline.
        text: one or two sentences.
    """

    stars: int
    title: str
    text: str


@dataclass(frozen=True)
class Product:
    """One thing on sale. All texts are printable ASCII, except `product_category`, whose levels are joined by ` › `.

    Attributes:
        asin: article number, upper case.
        title: full name, as shown.
        description: a paragraph.
        bullets: the list under "Features".
        category: one of a few departments.
        query: the search that finds this kind of product; part of the reward's type score.
        product_category: path of category levels.
        options: option name -> values, both lower case.
        attributes: hidden attributes that goals ask for.
        price: price in dollars that the reward compares.
        price_tag: price as shown.
        rating: stars as shown, or `N.A.`.
        reviews: customer reviews.
        picture: which drawing shows it (see `site.pictures`).
    """

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    category: str
    query: str
    product_category: str
    options: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    price: float
    price_tag: str
    rating: str = "N.A."
    reviews: tuple[Review, ...] = ()
    picture: str = "box"

    def to_json(self) -> str:
        """Return the product as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Product:
        """Read what `to_json` wrote."""
        data = json.loads(text)
        data["bullets"] = tuple(data["bullets"])
        data["attributes"] = tuple(data["attributes"])
        data["options"] = {name: tuple(values) for name, values in data["options"].items()}
        data["reviews"] = tuple(Review(**review) for review in data["reviews"])
        return cls(**data)

    def document(self) -> str:
        """The text that the search engine indexes: title, description, first bullet and options, lower case."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join([self.title, self.description, *self.bullets[:1], options]).lower()


@dataclass(frozen=True)
class Goal:
    """A shopper's goal.

    Attributes:
        asin: the product that the instruction was written for.
        instruction: the wish in words.
        attributes: attributes that count.
        options: option values that count.
        price_upper: highest price that counts, in dollars (1,000,000 without a limit).
        title: name of that product.
        query: its `query`.
        product_category: its `product_category`.
    """

    asin: str
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    price_upper: float
    title: str
    query: str
    product_category: str

    @classmethod
    def of(
        cls, product: Product, instruction: str, attributes: tuple[str, ...], options: tuple[str, ...], upper: float
    ) -> Goal:
        """Return the goal that an instruction for a product is."""
        filed = (product.title, product.query, product.product_category)
        return cls(product.asin, instruction, attributes, options, upper, *filed)

    def to_json(self) -> str:
        """Return the goal as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Goal:
        """Read what `to_json` wrote."""
        data = json.loads(text)
        data["attributes"], data["options"] = tuple(data["attributes"]), tuple(data["options"])
        return cls(**data)


def fold_text(value: object) -> str:
    """Return a value as printable ASCII with single blanks: accents are dropped, other characters become `?`."""
    plain = (c for c in unicodedata.normalize("NFKD", str(value)) if not unicodedata.combining(c))
    return " ".join("".join(c if c.isspace() or " " <= c <= "~" else "?" for c in plain).split())

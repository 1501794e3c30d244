"""The two records of the shop: a product and a goal. Plain frozen data, to and from JSON."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Review:
    """A customer's review, with 1 to 5 stars."""

    stars: int
    title: str
    text: str


@dataclass(frozen=True)
class Product:
    """One thing on sale. All texts but `product_category` are printable ASCII."""

    asin: str  # article number, upper case
    title: str
    description: str
    bullets: tuple[str, ...]  # the list under "Features"
    category: str
    query: str  # finds this kind of product; part of the reward's type score
    product_category: str  # category levels, joined by ` › `
    options: Mapping[str, tuple[str, ...]]  # name -> values, both lower case
    attributes: tuple[str, ...]  # hidden ones that goals ask for
    price: float  # in dollars, which the reward compares
    price_tag: str  # shown
    rating: str = "N.A."  # stars as shown
    reviews: tuple[Review, ...] = ()
    picture: str = "box"  # drawing that shows it (see `site.pictures`)

    def to_json(self) -> str:
        """Return the product as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Product:
        """Read what `to_json` wrote."""
        data = json.loads(text)
        data["bullets"], data["attributes"] = tuple(data["bullets"]), tuple(data["attributes"])
        data["options"] = {name: tuple(values) for name, values in data["options"].items()}
        data["reviews"] = tuple(Review(**review) for review in data["reviews"])
        return cls(**data)

    def document(self) -> str:
        """Return the indexed text: title, description, first bullet and options, lower case."""
        pairs = self.options.items()
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in pairs)
        return " ".join([self.title, self.description, *self.bullets[:1], options]).lower()


@dataclass(frozen=True)
class Goal:
    """A shopper's goal: a wish for a product, with the attributes and option values that count."""

    asin: str
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    price_upper: float  # highest price that counts, in dollars; 1,000,000 without a limit
    title: str
    query: str
    product_category: str

    @classmethod
    def of(
        cls, product: Product, instruction: str, attributes: tuple[str, ...], options: tuple[str, ...], upper: float
    ) -> Goal:
        """Return the goal of an instruction for a product."""
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
    """Return a value as printable ASCII with single blanks: no accents, `?` for other characters."""
    plain = (c for c in unicodedata.normalize("NFKD", str(value)) if not unicodedata.combining(c))
    return " ".join("".join(c if c.isspace() or " " <= c <= "~" else "?" for c in plain).split())

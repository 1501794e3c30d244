"""Reads taxonomy.yaml: the kinds of product that the generator knows, with their attributes and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from vlgym.registry.limited_yaml import read_yaml


@dataclass(frozen=True)
class Kind:
    """One kind of product.

    Attributes:
        name: what a shopper calls it.
        picture: drawing that shows it.
        category: department.
        path: category levels joined by ` › `.
        query: search that finds it.
        heads: nouns that end a title.
        materials: words that may stand before the noun.
        uses: words that may follow `for`.
        price: lowest and highest price in dollars.
        attributes: attributes that products of this kind may have.
        axes: option name -> all values; a product offers some of them.
    """

    name: str
    picture: str
    category: str
    path: str
    query: str
    heads: tuple[str, ...]
    materials: tuple[str, ...]
    uses: tuple[str, ...]
    price: tuple[float, float]
    attributes: tuple[str, ...]
    axes: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Taxonomy:
    """All kinds, and for each attribute its sentence and its place in a phrase (before or after the noun)."""

    kinds: tuple[Kind, ...]
    sentences: Mapping[str, str]
    before: frozenset[str]


@lru_cache(maxsize=1)
def load_taxonomy() -> Taxonomy:
    """Return the taxonomy that ships with the package."""
    data = read_yaml(resources.files(__package__).joinpath("taxonomy.yaml").read_text("utf-8"))
    before, after = data["attributes"]["before"], data["attributes"]["with"]
    kinds = []
    for entry in data["types"]:
        colours, options = entry.pop("colors"), entry.pop("options")
        axes: dict[str, tuple[str, ...]] = {"color": tuple(data["colors"][colours])} if colours else {}
        for name in options:
            axes[data["options"][name]["axis"]] = tuple(data["options"][name]["values"])
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
        }
        kinds.append(Kind(**fields, axes=axes))
    return Taxonomy(tuple(kinds), {**before, **after}, frozenset(before))

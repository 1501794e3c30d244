"""Reads taxonomy.yaml and phrases.yaml: kinds of product with attributes and options, and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from vlgym.registry.limited_yaml import read_yaml


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

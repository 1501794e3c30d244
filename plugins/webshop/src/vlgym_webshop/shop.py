"""A shop: one catalogue with its rules and its judge. Environments, oracle and web site all ask the same object."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from .catalogue.build import CatalogueSource, open_catalogue
from .catalogue.records import Goal
from .nouns import load_tagger
from .reward import Score, score_purchase
from .session import Page, Rules

_CACHED = 256


@dataclass(frozen=True)
class ShopConfig:
    """Settings that make two shops different.

    Attributes:
        source: which catalogue.
        nouns: see `nouns.load_tagger`.
        search_anywhere: see `session.Rules`.
    """

    source: CatalogueSource = field(default_factory=CatalogueSource)
    nouns: str = "auto"
    search_anywhere: bool = False


class Shop:
    """Catalogue, rules and judge. Safe for threads; not to be carried over a fork.

    Attributes:
        catalogue: products, goals, search.
        rules: pages and clicks.
        search: returns the article numbers that a query finds, best first, at most 50; 256 queries are remembered.

    Raises:
        UserError: the catalogue or the tagger cannot be had.
    """

    def __init__(self, config: ShopConfig) -> None:
        _, self._tag = load_tagger(config.nouns, generated=config.source.data is None)
        self.catalogue = open_catalogue(config.source)
        # A list of those with an attribute would tell look-alikes apart without a look at their pages.
        plain = config.source.lookalikes and config.source.data is None
        self.search = lru_cache(_CACHED)(self.catalogue.search_texts if plain else self.catalogue.search)
        self.rules = Rules(self.search, self.catalogue.product, config.search_anywhere)

    def judge(self, page: Page, goal: Goal) -> Score:
        """Judge the purchase of what a page shows, with its options."""
        return score_purchase(self.catalogue.product(page.asin), dict(page.options), goal, self._tag)

    def close(self) -> None:
        """Close the catalogue."""
        self.catalogue.close()

"""A shop: one catalogue with its rules and its judge, for environments, oracle and web site."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from .catalogue.build import CatalogueSource, open_catalogue
from .catalogue.records import Goal
from .nouns import load_tagger
from .reward import Score, score_purchase
from .session import Page, Rules


@dataclass(frozen=True)
class ShopConfig:
    """Settings that make two shops different: see `nouns.load_tagger` and `session.Rules`."""

    source: CatalogueSource = field(default_factory=CatalogueSource)
    nouns: str = "auto"
    search_anywhere: bool = False


class Shop:
    """Catalogue, rules and judge. Safe for threads, not after a fork."""

    def __init__(self, config: ShopConfig) -> None:
        _, self._tag = load_tagger(config.nouns, generated=config.source.data is None)
        self.catalogue = open_catalogue(config.source)

        # A list of those with an attribute would tell look-alikes apart without their pages.
        plain = config.source.lookalikes and config.source.data is None
        search = self.catalogue.search_texts if plain else self.catalogue.search
        self.search = lru_cache(256)(search)
        self.rules = Rules(self.search, self.catalogue.product, config.search_anywhere)

    def judge(self, page: Page, goal: Goal) -> Score:
        """Judge the purchase of what a page shows, with its options."""
        product = self.catalogue.product(page.asin)
        return score_purchase(product, dict(page.options), goal, self._tag)

    def close(self) -> None:
        """Close the catalogue."""
        self.catalogue.close()

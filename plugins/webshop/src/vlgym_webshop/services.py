"""Shops, and the services that the environments of a process share: browser windows, server, shops.

These are made at first use and ended with the last user. A forked process makes others. Constructing
an environment starts nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import util
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakSet

from vlgym.types import Image

from .browser import WindowPool
from .catalogue.build import CatalogueSource, open_catalogue
from .catalogue.records import Goal
from .reward import Score, load_tagger, score_purchase
from .session import Page, Rules

if TYPE_CHECKING:
    from .site.server import ShopServer


@dataclass(frozen=True)
class ShopConfig:
    """Settings that make two shops different: see `load_tagger` and `Rules`."""

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


class Services:
    """Windows, server and shops of this process, with a count of the environments that use them."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._users: WeakSet[object] = WeakSet()
        self._shops: dict[ShopConfig, Shop] = {}
        self.server: ShopServer | None = None
        self.windows = WindowPool(self.serve)

    def join(self, user: object) -> None:
        """Count an environment as a user."""
        with self._lock:
            self._users.add(user)

    def leave(self, user: object) -> None:
        """Forget a user; the last one to go ends the browser and the server."""
        with self._lock:
            if user in self._users:
                self._users.remove(user)
                if not self._users:
                    self.close()

    def shop(self, config: ShopConfig) -> Shop:
        """Return the shop of a configuration."""
        with self._lock:
            if config not in self._shops:
                self._shops[config] = Shop(config)
            return self._shops[config]

    def url(self, config: ShopConfig, goal: int, page: Page) -> str:
        """Return the address of a page, starting the server where none runs."""
        with self._lock:
            shop, server = self.shop(config), self.serve()
            name = f"shop{list(self._shops).index(config)}"
            server.shops[name] = shop
            return server.url(name, goal, page)

    def photograph(self, config: ShopConfig, goal: int, page: Page) -> Image:
        """Return the picture of a page: `[H, W, 3] uint8`, read-only."""
        return self.windows.photograph(self.url(config, goal, page))

    def close(self) -> None:
        """End browser and server and close the shops; they are made again when they are wanted."""
        with self._lock:
            self.windows.close()
            if self.server is not None:
                self.server.close()
            for shop in self._shops.values():
                shop.catalogue.close()
            self.server = None
            self._shops.clear()

    def serve(self) -> ShopServer:
        """Return the server, starting it where none runs."""
        if self.server is None:
            from .site.server import ShopServer  # Flask is slow to import

            self.server = ShopServer()
        return self.server


_current: tuple[int, Services] | None = None
_making = RLock()


def get_services() -> Services:
    """Return the services of this process."""
    global _current
    with _making:
        if _current is None or _current[0] != os.getpid():
            services = Services()
            _current = (os.getpid(), services)
            # Runs at the end of the main process and of multiprocessing's children.
            util.Finalize(None, services.close, exitpriority=100)
        return _current[1]

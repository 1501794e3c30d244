"""The catalogue on disk: one read-only SQLite file and one search index, shared by all processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import Any

from vlgym.errors import UserError

from ..search import HITS, SearchIndex
from .records import Goal, Product

SCHEMA = """
CREATE TABLE products (position INTEGER PRIMARY KEY, asin TEXT NOT NULL UNIQUE,
  category TEXT NOT NULL, query TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX products_category ON products (category);
CREATE INDEX products_query ON products (query);
CREATE TABLE attributes (position INTEGER NOT NULL, attribute TEXT NOT NULL);
CREATE INDEX attributes_attribute ON attributes (attribute);
CREATE TABLE goals (position INTEGER PRIMARY KEY, body TEXT NOT NULL);
"""
FILE = "catalogue.sqlite"
INDEX = "index"
_LISTS = {"<c>": ("products", "category"), "<q>": ("products", "query"), "<a>": ("attributes", "attribute")}


def write_products(folder: Path, products: Iterable[Product]) -> None:
    """Begin a catalogue in an empty folder: store and index its products in order."""
    with closing(sqlite3.connect(folder / FILE)) as database, database:
        database.executescript(SCHEMA)

        def documents() -> Iterator[str]:
            for position, product in enumerate(products):
                row = (position, product.asin, product.category, product.query, product.to_json())
                database.execute("INSERT INTO products VALUES (?, ?, ?, ?, ?)", row)
                attributes = [(position, text) for text in product.attributes]
                database.executemany("INSERT INTO attributes VALUES (?, ?)", attributes)
                yield product.document()

        SearchIndex.build(documents()).save(folder / INDEX)


def write_goals(folder: Path, goals: Iterable[Goal]) -> None:
    """End a catalogue: store its goals in order."""
    with closing(sqlite3.connect(folder / FILE)) as database, database:
        rows = ((position, goal.to_json()) for position, goal in enumerate(goals))
        database.executemany("INSERT INTO goals VALUES (?, ?)", rows)


class Catalogue:
    """Products, goals and search of one catalogue folder. Safe for threads, not after a fork."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = RLock()
        self.product = lru_cache(512)(self._read_product)

        # The file never changes, so SQLite needs no locks.
        try:
            address = f"{(folder / FILE).resolve().as_uri()}?mode=ro&immutable=1"
            self._database = sqlite3.connect(address, uri=True, check_same_thread=False)
            self.products = int(self._one("SELECT COUNT(*) FROM products")[0])
            self.goals = int(self._one("SELECT COUNT(*) FROM goals")[0])
            self._index = SearchIndex.open(folder / INDEX)
        except (sqlite3.Error, OSError, ValueError, KeyError) as error:
            raise UserError(
                f"The cached catalogue {folder} is damaged ({type(error).__name__}: {error}). "
                "Delete that folder; it is made again."
            ) from error

    def goal(self, number: int) -> Goal:
        """Return goal `number`."""
        return Goal.from_json(self._one("SELECT body FROM goals WHERE position = ?", number)[0])

    def search(self, query: str) -> list[str]:
        """Return the article numbers that a query finds, best first, at most 50.

        A first word `<c>`, `<q>` or `<a>` lists a category, products filed under a query, or an
        attribute, in catalogue order, as published; the published `<r>` (random products) is a
        plain word here, because a page must be a function of its address.
        """
        first, _, rest = query.strip().partition(" ")
        if first not in _LISTS:
            return self.search_texts(query)
        table, column = _LISTS[first]
        statement = f"SELECT position FROM {table} WHERE {column} = ? ORDER BY position LIMIT ?"
        with self._lock:
            rows = self._database.execute(statement, (rest.strip(), HITS)).fetchall()
        return self._asins(row[0] for row in rows)

    def search_texts(self, query: str) -> list[str]:
        """Return the article numbers whose texts the query finds, best first, at most 50."""
        return self._asins(self._index.search(query))

    def _asins(self, positions: Iterable[int]) -> list[str]:
        statement = "SELECT asin FROM products WHERE position = ?"
        return [self._one(statement, position)[0] for position in positions]

    def _read_product(self, asin: str) -> Product:
        """Return a product by its article number (any case); a `KeyError` where there is none."""
        row = self._one("SELECT body FROM products WHERE asin = ?", asin.upper())
        if row is None:
            raise KeyError(f"no product {asin}")
        return Product.from_json(row[0])

    def _one(self, statement: str, *values: object) -> Any:
        with self._lock:
            return self._database.execute(statement, values).fetchone()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

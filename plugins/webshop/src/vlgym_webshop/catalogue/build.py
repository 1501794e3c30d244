"""A catalogue on disk: one read-only SQLite file and one search index, shared by all processes.

It is found in the cache, or made there: once, under a lock, put in place when complete.
"""

import fcntl
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import Any

from vlgym.errors import UserError, check_number
from vlgym.files import find_cache, open_end, written_whole

from ..search import HITS, SearchIndex
from .files import find_files, read_goals, read_products
from .generate import VERSION, generate_product
from .lookalikes import LOOKALIKES_VERSION, generate_lookalike, generate_lookalike_goals
from .records import Goal, Product
from .wishes import generate_goals

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


LAYOUT = 1  # version of the files in the cache


@dataclass(frozen=True)
class CatalogueSource:
    """Source of a catalogue: generated (`products`, `seed`, `lookalikes`), or the files in `data`."""

    products: int = 1000
    seed: int = 0
    data: str | None = None
    lookalikes: bool = False

    def __post_init__(self) -> None:
        check_number("products", self.products, 100, 1_000_000)
        check_number("catalogue_seed", self.seed, 0)

    def name(self) -> str:
        """Return the name of the catalogue's folder in the cache; equal only for equal contents."""
        if self.data is None:
            kind = f"lookalikes-{LOOKALIKES_VERSION}" if self.lookalikes else "generated"
            return f"{kind}-{VERSION}.{LAYOUT}-{self.products}-{self.seed}"
        digest = hashlib.sha256()
        for path in find_files(Path(self.data).expanduser()):
            status = path.stat()
            digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
        return f"files-{LAYOUT}-{digest.hexdigest()[:16]}"


def open_catalogue(source: CatalogueSource) -> Catalogue:
    """Open a catalogue; make it first where the cache does not hold it, or raise a `UserError`."""
    root = find_cache("webshop")
    folder = root / source.name()
    if (folder / FILE).is_file():
        return Catalogue(folder)

    # Another process may make the same one meanwhile.
    try:
        root.mkdir(parents=True, exist_ok=True)
        with open_end(root / f"{folder.name}.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / FILE).is_file():
                with written_whole(folder, without=None) as scratch:
                    _make(source, scratch)
    except OSError as error:
        raise UserError(
            f"The catalogue cannot be written to {root}: {error}. Set VLGYM_CACHE to a folder that can be written."
        ) from error
    return Catalogue(folder)


def _make(source: CatalogueSource, folder: Path) -> None:
    if source.data is None:
        make, goals = generate_product, generate_goals
        if source.lookalikes:
            make, goals = generate_lookalike, generate_lookalike_goals
        write_products(folder, (make(index, source.seed) for index in range(source.products)))
        write_goals(folder, goals(source.products, source.seed))
        return

    # Goals need a part of each product, which fits in memory.
    items, attributes, human = find_files(Path(source.data).expanduser())
    briefs: list[Product] = []
    write_products(folder, _keep_briefs(read_products(items, attributes), briefs))
    write_goals(folder, read_goals(human, briefs))


def _keep_briefs(products: Iterator[Product], briefs: list[Product]) -> Iterator[Product]:
    """Pass products on, and keep the parts of them that goals need."""
    for product in products:
        unread = {"description": "", "bullets": (), "options": {}, "attributes": (), "reviews": ()}
        briefs.append(replace(product, **unread))  # type: ignore[arg-type]
        yield product

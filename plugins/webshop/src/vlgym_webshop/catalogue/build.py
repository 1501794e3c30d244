"""Finds a catalogue in the cache, or makes it there: once, under a lock, moved into place only when it is complete."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from vlgym.errors import UserError, check_number
from vlgym.files import find_cache, open_end

from .files import find_files, read_goals, read_products
from .generate import VERSION, generate_product
from .lookalikes import LOOKALIKES_VERSION, generate_lookalike, generate_lookalike_goals
from .records import Product
from .store import FILE, Catalogue, write_goals, write_products
from .wishes import generate_goals

LAYOUT = 1
"""Version of the files in the cache."""

LEAST_PRODUCTS = 100
MOST_PRODUCTS = 1_000_000


@dataclass(frozen=True)
class CatalogueSource:
    """Source of a catalogue: generated (`products`, `seed`, `lookalikes`), or WebShop's files in the folder `data`.

    Raises:
        UserError: a value is out of its range.
    """

    products: int = 1000
    seed: int = 0
    data: str | None = None
    lookalikes: bool = False

    def __post_init__(self) -> None:
        check_number("products", self.products, LEAST_PRODUCTS, MOST_PRODUCTS)
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
    """Open a catalogue; make it first where the cache does not hold it.

    Raises:
        UserError: a file is missing, malformed or damaged, or the cache cannot be written.
    """
    root = find_cache("webshop")
    folder = root / source.name()
    if not (folder / FILE).is_file():
        try:
            root.mkdir(parents=True, exist_ok=True)
            with _locked(root / f"{folder.name}.lock"):
                if not (folder / FILE).is_file():
                    _make(source, root, folder)
        except OSError as error:
            raise UserError(
                f"The catalogue cannot be written to {root}: {error}. Set VLGYM_CACHE to a folder that can be written."
            ) from error
    return Catalogue(folder)


def _make(source: CatalogueSource, root: Path, folder: Path) -> None:
    scratch = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=root))
    try:
        if source.data is None:
            make, goals = generate_product, generate_goals
            if source.lookalikes:
                make, goals = generate_lookalike, generate_lookalike_goals
            write_products(scratch, (make(index, source.seed) for index in range(source.products)))
            write_goals(scratch, goals(source.products, source.seed))
        else:
            items, attributes, human = find_files(Path(source.data).expanduser())
            briefs: list[Product] = []
            write_products(scratch, _keep_briefs(read_products(items, attributes), briefs))
            write_goals(scratch, read_goals(human, iter(briefs)))
        if folder.exists():
            shutil.rmtree(folder)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _keep_briefs(products: Iterator[Product], briefs: list[Product]) -> Iterator[Product]:
    """Pass products on, keeping what goals need of each (no texts), so that the full catalogue fits in memory."""
    for product in products:
        brief = replace(product, description="", bullets=(), options={}, attributes=(), reviews=())
        briefs.append(brief)
        yield product


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open_end(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield

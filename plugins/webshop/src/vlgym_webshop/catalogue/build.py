"""Finds a catalogue in the cache, or makes it there: once, under a lock, put in place when complete."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vlgym.errors import UserError, check_number
from vlgym.files import find_cache, open_end, written_whole

from .files import find_files, read_goals, read_products
from .generate import VERSION, generate_product
from .lookalikes import LOOKALIKES_VERSION, generate_lookalike, generate_lookalike_goals
from .records import Product
from .store import FILE, Catalogue, write_goals, write_products
from .wishes import generate_goals

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

"""Reads WebShop's files (items_shuffle*.json, items_ins_v2*.json, items_human_ins.json).

Prices and price limits are drawn by generators seeded per product, where the published loader drew
them before it set its seed; so here they are the same in every run. Texts are reduced to printable
ASCII with single blanks, so that each option can be written in a reply.
"""

import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vlgym.errors import UserError

from ..site.pictures import name_picture
from .records import Goal, Product, fold_text
from .wishes import NO_LIMIT, price_limit

SHUFFLE_SEED = 233  # seed of the published order of goals; the split follows that order
NO_PRICE = 100.0  # price of a product whose file states none, as published
ITEMS = ("items_shuffle.json", "items_shuffle_1000.json")
ATTRIBUTES = ("items_ins_v2.json", "items_ins_v2_1000.json")
HUMAN = "items_human_ins.json"

_AMOUNT = re.compile(r"\d+(?:\.\d+)?")
_CHUNK = 1 << 20
_AGAIN = "Download the file again."


def find_files(folder: Path) -> tuple[Path, Path, Path]:
    """Return products, attributes and human instructions, the full files if there, or a `UserError`."""
    if not folder.is_dir():
        raise UserError(f"data={str(folder)!r} is not a folder. It must hold {ITEMS[0]}, {ATTRIBUTES[0]} and {HUMAN}.")
    for items, attributes in zip(ITEMS, ATTRIBUTES, strict=True):
        if not (folder / items).is_file():
            continue
        for name in (attributes, HUMAN):
            if not (folder / name).is_file():
                reason = "both come from WebShop's download script"
                raise UserError(f"{folder} holds {items} but not {name}; {reason}.")
        return folder / items, folder / attributes, folder / HUMAN
    raise UserError(f"{folder} holds neither {' nor '.join(ITEMS)}; give data= the folder of WebShop's own files.")


def read_products(items: Path, attributes: Path) -> Iterator[Product]:
    """Yield the products in the order of the file, without unusable and repeated article numbers.

    A `UserError` names the file and the product that is not as it should be.
    """
    known = _read_mapping(attributes)
    asins: set[str] = set()
    for number, entry in enumerate(read_array(items)):
        if not isinstance(entry, dict):
            kind = type(entry).__name__
            raise UserError(f"{items}: product {number} is {kind}, not an object. {_AGAIN}")
        asin = entry.get("asin")
        if not isinstance(asin, str) or asin == "nan" or len(asin) > 10 or asin in asins:
            continue
        asins.add(asin)

        # A damaged entry is the user's to fix, so the message names it.
        try:
            yield _product(asin, entry, known.get(asin, {}))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(
                f"{items}: product {number} ({asin}) is malformed: {type(error).__name__}: {error}. "
                "Fix or remove that entry."
            ) from error


def read_goals(human: Path, products: Iterable[Product]) -> list[Goal]:
    """Return the human goals of `products` in the published order: test, dev (our val), train."""
    instructions = _read_mapping(human)
    goals = []
    for product in products:
        for number, entry in enumerate(instructions.get(product.asin, ())):
            try:
                goals += _goals(product, number, entry)
            except (KeyError, TypeError, AttributeError) as error:
                raise UserError(
                    f"{human}: instruction {number} of {product.asin} is malformed: {type(error).__name__}: {error}."
                ) from error
    if not goals:
        reason = "the files do not belong together"
        raise UserError(f"{human} has no instruction for any of the products; {reason}.")
    random.Random(SHUFFLE_SEED).shuffle(goals)
    return goals


def read_array(path: Path) -> Iterator[Any]:
    """Yield the elements of a JSON array one by one, so that gigabytes need little memory."""
    decoder = json.JSONDecoder()
    with path.open(encoding="utf-8") as stream:
        buffer, ended = stream.read(_CHUNK).lstrip(), False
        if buffer[:1] != "[":
            raise UserError(f"{path} is not a JSON array of products. {_AGAIN}")
        position = 1
        while True:
            while buffer[position : position + 1].isspace() or buffer[position : position + 1] == ",":
                position += 1
            if buffer[position : position + 1] == "]":
                return

            # An element that reaches the end of the buffer may go on: a number, for example.
            try:
                value, stop = decoder.raw_decode(buffer, position)
                if stop == len(buffer) and not ended:
                    raise ValueError("the element may go on")
            except ValueError as error:
                if ended:
                    place = f"near its character {stream.tell()}"
                    raise UserError(f"{path} is damaged {place}: {error}. {_AGAIN}") from error
                more = stream.read(max(_CHUNK, len(buffer)))
                ended = not more
                buffer, position = buffer[position:] + more, 0
                continue
            position = stop
            yield value


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise UserError(f"{path} cannot be read as JSON: {error}. {_AGAIN}") from error
    if not isinstance(data, dict):
        kind = type(data).__name__
        raise UserError(f"{path} must hold an object keyed by article number, found {kind}.")
    return data


def _product(asin: str, entry: dict[str, Any], extra: dict[str, Any]) -> Product:
    bullets = entry.get("small_description") or []
    bullets = bullets if isinstance(bullets, list) else [bullets]
    price, tag = _price(asin, entry.get("pricing"))

    # A slash would end a value in an address; the published loader replaces it, too.
    options = {}
    for name, contents in (entry.get("customization_options") or {}).items():
        if contents is not None:
            texts = (content["value"].strip().replace("/", " | ").lower() for content in contents)
            options[fold_text(name.lower())] = tuple(dict.fromkeys(filter(None, _fold(texts))))
    title, path = fold_text(entry["name"]), entry.get("product_category", "")
    query = fold_text(entry.get("query", "").lower().strip())
    return Product(
        asin=asin.upper(),
        title=title,
        description=fold_text(entry.get("full_description") or ""),
        bullets=_fold(bullets),
        category=fold_text(entry.get("category", "")),
        query=query,
        product_category=path,
        options=options,
        attributes=_fold(extra.get("attributes", ("DUMMY_ATTR",))),
        price=price,
        price_tag=tag,
        picture=name_picture(f"{query} {title} {path}"),
    )


def _fold(texts: Iterable[object]) -> tuple[str, ...]:
    return tuple(fold_text(text) for text in texts)


def _price(asin: str, pricing: Any) -> tuple[float, str]:
    amounts = [float(text) for text in _AMOUNT.findall(str(pricing or "").replace(",", ""))]
    low, *more = amounts or [NO_PRICE]
    if not more:
        return low, f"${low}"
    return random.Random(f"price {asin}").uniform(low, more[0]), f"${low} to ${more[0]}"


def _goals(product: Product, number: int, entry: dict[str, Any]) -> list[Goal]:
    """Return the goal of an instruction; none where it names no attribute, as published."""
    attributes = _fold(entry["instruction_attributes"])
    if not attributes:
        return []
    options = entry["instruction_options"]
    options = _fold(options.values() if isinstance(options, dict) else options)
    upper = price_limit(product.price, random.Random(f"limit {product.asin} {number}"))
    limit = f", and price lower than {upper:.2f} dollars" if upper < NO_LIMIT else ""
    instruction = fold_text(entry["instruction"]).strip(".") + limit
    return [Goal.of(product, instruction, attributes, options, upper)]

"""Reads WebShop's own files (items_shuffle*.json, items_ins_v2*.json, items_human_ins.json) as products and goals.

Prices and price limits are drawn by generators seeded per product, where the published loader drew them before it set
its seed; so here they are the same in every run. Texts are reduced to printable ASCII with single blanks, so that
each option can be written in a reply.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vlgym.errors import UserError

from ..site.picture_names import name_picture
from .records import Goal, Product, fold_text
from .wishes import NO_LIMIT, price_limit

SHUFFLE_SEED = 233
"""Seed of the published order of goals; the split follows that order."""

NO_PRICE = 100.0
"""Price of a product whose file states none, as published."""

ITEMS = ("items_shuffle.json", "items_shuffle_1000.json")
ATTRIBUTES = ("items_ins_v2.json", "items_ins_v2_1000.json")
HUMAN = "items_human_ins.json"

_AMOUNT = re.compile(r"\d+(?:\.\d+)?")
_CHUNK = 1 << 20


def find_files(folder: Path) -> tuple[Path, Path, Path]:
    """Return the paths of products, attributes and human instructions; the full files are preferred to those of 1,000
    products.

    Raises:
        UserError: one is missing.
    """
    if not folder.is_dir():
        raise UserError(f"data={str(folder)!r} is not a folder. It must hold {ITEMS[0]}, {ATTRIBUTES[0]} and {HUMAN}.")
    for items, attributes in zip(ITEMS, ATTRIBUTES, strict=True):
        if (folder / items).is_file():
            for name in (attributes, HUMAN):
                if not (folder / name).is_file():
                    raise UserError(f"{folder} holds {items} but not {name}; both come from WebShop's download script.")
            return folder / items, folder / attributes, folder / HUMAN
    raise UserError(f"{folder} holds neither {' nor '.join(ITEMS)}; give data= the folder of WebShop's own files.")


def read_products(items: Path, attributes: Path) -> Iterator[Product]:
    """Yield the products in the order of the file; a product with an unusable or repeated article number is left out,
    as published.

    Raises:
        UserError: a file is not the JSON it should be; the message names file and product.
    """
    known = _read_mapping(attributes)
    asins: set[str] = set()
    for number, entry in enumerate(read_array(items)):
        if not isinstance(entry, dict):
            raise UserError(
                f"{items}: product {number} is {type(entry).__name__}, not an object. Download the file again."
            )
        asin = entry.get("asin")
        if not isinstance(asin, str) or asin == "nan" or len(asin) > 10 or asin in asins:
            continue
        asins.add(asin)
        try:
            yield _product(asin, entry, known.get(asin, {}))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(
                f"{items}: product {number} ({asin}) is malformed: {type(error).__name__}: {error}. "
                "Fix or remove that entry."
            ) from error


def read_goals(human: Path, products: Iterator[Product]) -> list[Goal]:
    """Return the human goals of `products` in the published order (test 0-499, dev 500-1499, train from 1500).

    Raises:
        UserError: the file is malformed, or has no goal for these products.
    """
    instructions = _read_mapping(human)
    goals = []
    for product in products:
        for number, entry in enumerate(instructions.get(product.asin, ())):
            try:
                attributes = tuple(fold_text(text) for text in entry["instruction_attributes"])
                if not attributes:
                    continue
                options = entry["instruction_options"]
                options = options.values() if isinstance(options, dict) else options
                goals.append(
                    _goal(product, number, entry["instruction"], attributes, tuple(fold_text(text) for text in options))
                )
            except (KeyError, TypeError, AttributeError) as error:
                raise UserError(
                    f"{human}: instruction {number} of {product.asin} is malformed: {type(error).__name__}: {error}."
                ) from error
    if not goals:
        raise UserError(f"{human} has no instruction for any of the products; the files do not belong together.")
    random.Random(SHUFFLE_SEED).shuffle(goals)
    return goals


def read_array(path: Path) -> Iterator[Any]:
    """Yield the elements of a JSON array one by one, so that a file of gigabytes needs little memory.

    Raises:
        UserError: the file is not a JSON array, or ends early.
    """
    decoder = json.JSONDecoder()
    with path.open(encoding="utf-8") as stream:
        buffer, position, ended = stream.read(_CHUNK), 0, False
        while buffer[position : position + 1].isspace():
            position += 1
        if buffer[position : position + 1] != "[":
            raise UserError(f"{path} is not a JSON array of products. Download the file again.")
        position += 1
        while True:
            while buffer[position : position + 1].isspace() or buffer[position : position + 1] == ",":
                position += 1
            if buffer[position : position + 1] == "]":
                return
            try:
                value, stop = decoder.raw_decode(buffer, position)
                if stop == len(buffer) and not ended:
                    raise ValueError("the element may go on")
            except ValueError as error:
                if ended:
                    raise UserError(
                        f"{path} is damaged near its character {stream.tell()}: {error}. Download the file again."
                    ) from error
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
        raise UserError(f"{path} cannot be read as JSON: {error}. Download the file again.") from error
    if not isinstance(data, dict):
        raise UserError(f"{path} must hold an object keyed by article number, found {type(data).__name__}.")
    return data


def _product(asin: str, entry: dict[str, Any], extra: dict[str, Any]) -> Product:
    bullets = entry.get("small_description") or []
    bullets = bullets if isinstance(bullets, list) else [bullets]
    title = fold_text(entry["name"])
    price, tag = _price(asin, entry.get("pricing"))
    options = {}
    for name, contents in (entry.get("customization_options") or {}).items():
        if contents is not None:
            values = (fold_text(content["value"].strip().replace("/", " | ").lower()) for content in contents)
            options[fold_text(name.lower())] = tuple(dict.fromkeys(value for value in values if value))
    query = fold_text(entry.get("query", "").lower().strip())
    path = entry.get("product_category", "")
    return Product(
        asin=asin.upper(),
        title=title,
        description=fold_text(entry.get("full_description") or ""),
        bullets=tuple(fold_text(text) for text in bullets),
        category=fold_text(entry.get("category", "")),
        query=query,
        product_category=path,
        options=options,
        attributes=tuple(fold_text(text) for text in extra.get("attributes", ("DUMMY_ATTR",))),
        price=price,
        price_tag=tag,
        picture=name_picture(f"{query} {title} {path}"),
    )


def _price(asin: str, pricing: Any) -> tuple[float, str]:
    amounts = [float(text) for text in _AMOUNT.findall(str(pricing or "").replace(",", ""))]
    if not amounts:
        return NO_PRICE, f"${NO_PRICE}"
    if len(amounts) == 1:
        return amounts[0], f"${amounts[0]}"
    low, high = amounts[:2]
    return random.Random(f"price {asin}").uniform(low, high), f"${low} to ${high}"


def _goal(
    product: Product, number: int, instruction: str, attributes: tuple[str, ...], options: tuple[str, ...]
) -> Goal:
    upper = price_limit(product.price, random.Random(f"limit {product.asin} {number}"))
    suffix = f", and price lower than {upper:.2f} dollars" if upper < NO_LIMIT else ""
    return Goal.of(product, fold_text(instruction).strip(".") + suffix, attributes, options, upper)

"""Goals of the generated catalogue: a shopper's wish, in 48 sentence forms, for a product that exists.

A goal is written from one product (attributes and option values it has, a price limit above its
price), so it can always be met. The target products of the three splits are disjoint: one product
in ten is for test, one for val.
"""

import random
from collections.abc import Callable, Iterator

from .generate import Kind, generate_product, load_data, load_taxonomy
from .records import Goal, Product

COUNTS = {"test": 500, "val": 1000, "train": 10_587}
"""Goals of each split, in the order of their numbers: as many as WebShop's human instructions."""

NO_LIMIT = 1_000_000.0  # `price_upper` of a goal without a price limit, as published


def split_range(split: str, total: int) -> tuple[int, int]:
    """Return first and last + 1 number of a split's goals, as published."""
    first, last = {"test": (0, 500), "val": (500, 1500), "train": (1500, total)}[split]
    return min(first, total), min(last, total)


def split_of_goal(number: int) -> str:
    """Return the split of a goal's number."""
    return "test" if number < 500 else "val" if number < 1500 else "train"


def generate_goals(products: int, seed: int = 0) -> Iterator[Goal]:
    """Yield all goals of a generated catalogue of `products` products, in the order of `COUNTS`."""
    for index, rng in draw_targets(f"webshop goals {seed}", products, split_of_target):
        yield write_goal(generate_product(index, seed), load_taxonomy().kind_of(index), rng)


def draw_targets(
    name: str, products: int, split_of: Callable[[int], str | None]
) -> Iterator[tuple[int, random.Random]]:
    """Yield for each goal the number of its product, and the generator to draw its words from."""
    for split, count in COUNTS.items():
        targets = [index for index in range(products) if split_of(index) == split]
        rng = random.Random(f"{name} {split} {products}")
        for number in range(count):
            if number % len(targets) == 0:
                rng.shuffle(targets)
            yield targets[number % len(targets)], rng


def write_goal(
    product: Product, kind: Kind, rng: random.Random, *, marks: tuple[str, ...] = (), limit: float | None = None
) -> Goal:
    """Return a goal that buying `product` meets in full; `marks` and `limit` (dollars) are drawn by default."""
    # The wish: attributes, an option value of most axes, a price limit.
    drawn = rng.sample(product.attributes, rng.randint(1, min(3, len(product.attributes))))
    attributes = marks or tuple(drawn)
    axes = product.options.items()
    chosen = {axis: rng.choice(values) for axis, values in axes if rng.random() < 0.85}
    upper = price_limit(product.price, rng) if rng.random() < 0.8 else NO_LIMIT
    upper = upper if limit is None else limit

    # Some attributes stand before the noun, the others follow with the options.
    before, phrases = load_taxonomy().before, load_data("catalogue/phrases.yaml")
    nouns = " and ".join(text for text in attributes if text not in before)
    noun = rng.choice([kind.name, kind.name, rng.choice(kind.heads).lower()])
    phrase = _join_before([text for text in attributes if text in before], noun)
    details = [phrases["options"][axis].format(value=value) for axis, value in chosen.items()]
    if nouns:
        details.append(f"with {nouns}" if rng.random() < 0.7 else f"that has {nouns}")
    rng.shuffle(details)
    rest = f" {', '.join(details)}" if details else ""

    # The sentence: half of the shoppers write capitals and a full stop.
    price = rng.choice(phrases["prices"]).format(upper=upper) if upper < NO_LIMIT else ""
    sentence = rng.choice(phrases["forms"]).format(item=phrase, rest=rest, price=price)
    if rng.random() < 0.5:
        sentence = sentence[0].upper() + sentence[1:].replace(" i ", " I ").replace(" i'", " I'")
        sentence += "" if sentence.endswith("?") else "."
    return Goal.of(product, sentence, attributes, tuple(chosen.values()), upper)


def price_limit(price: float, rng: random.Random) -> float:
    """Return a limit from the published grid, the multiples of 10 up to 990.

    Of the first four above `price` two are drawn and the larger is taken, else there is none.
    """
    grid = [10.0 * step for step in range(1, 100) if 10.0 * step > price][:4]
    return max(rng.sample(grid, 2)) if len(grid) >= 2 else NO_LIMIT


def split_of_target(index: int) -> str:
    """Return the split whose goals may want product (or group) `index`: each meets every kind."""
    turn = index + index // len(load_taxonomy().kinds)
    return {0: "test", 1: "val"}.get(turn % 10, "train")


def _join_before(adjectives: list[str], noun: str) -> str:
    """Return `a non slip, light weight rug`; plural nouns get no article."""
    words = f"{', '.join(adjectives)} {noun}".strip()
    if noun.endswith("s") and not noun.endswith(("ss", "sauce")):
        return words
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"

"""Goals for the generated catalogue: what a shopper says, in 48 sentence forms, about a product that exists.

A goal is written from one product (attributes and option values it has, a price limit above its own price), so it can
always be met. The target products of the three splits are disjoint: one product in ten is kept for test, one for val.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from .generate import generate_product
from .records import Goal, Product
from .taxonomy import Kind, load_taxonomy

COUNTS = {"test": 500, "val": 1000, "train": 10_587}
"""Goals of each split, in the order of their numbers: as many as WebShop's human instructions."""

NO_LIMIT = 1_000_000.0
"""`price_upper` of a goal without a price limit, as published."""

FORMS = (
    "i am looking for {item}{rest}{price}",
    "i need {item}{rest}{price}",
    "find me {item}{rest}{price}",
    "i want to buy {item}{rest}{price}",
    "can you find {item}{rest}{price}?",
    "could you get me {item}{rest}{price}?",
    "please help me find {item}{rest}{price}",
    "i'd like {item}{rest}{price}",
    "looking for {item}{rest}{price}",
    "show me {item}{rest}{price}",
    "i'm shopping for {item}{rest}{price}",
    "do you sell {item}{rest}{price}?",
    "where can i get {item}{rest}{price}?",
    "i would like to order {item}{rest}{price}",
    "order {item}{rest} for me{price}",
    "my old one broke, so i need {item}{rest}{price}",
    "my sister asked me for {item}{rest}{price}",
    "as a birthday present for my brother i want {item}{rest}{price}",
    "we are moving house and still miss {item}{rest}{price}",
    "i'm going on a trip next week and need {item}{rest}{price}",
    "my roommate keeps borrowing mine, so get me {item}{rest}{price}",
    "after a long search i still have not found {item}{rest}{price}",
    "what i really want is {item}{rest}{price}",
    "it has to be {item}{rest}{price}",
    "get {item}{rest}{price}, nothing else will do",
    "i'm interested in {item}{rest}{price}",
    "i have been thinking about {item}{rest}{price}",
    "help me pick {item}{rest}{price}",
    "for my mother, {item}{rest}{price}",
    "for the office i want {item}{rest}{price}",
    "i've run out, so i need {item}{rest}{price}",
    "a friend recommended {item}{rest}{price}, please find it",
    "my doctor told me to look for {item}{rest}{price}",
    "for this winter i am after {item}{rest}{price}",
    "i saw {item}{rest} at a friend's place and want one{price}",
    "could i have {item}{rest}{price}, please",
    "is there {item}{rest}{price}?",
    "i'd love to find {item}{rest}{price}",
    "search for {item}{rest}{price} and put it in my cart",
    "hello, i am trying to find {item}{rest}{price}",
    "my shopping list says {item}{rest}{price}",
    "nothing fancy, just {item}{rest}{price}",
    "i need to replace what i have with {item}{rest}{price}",
    "we need {item}{rest}{price} by the weekend",
    "i promised my daughter {item}{rest}{price}",
    "let's get {item}{rest}{price}",
    "{item}{rest}{price} would make me happy",
    "{item}{rest}{price}",
)
"""Complete sentence forms; `{item}` is the noun phrase, `{rest}` what follows it, `{price}` the limit (or nothing)."""

PRICES = (
    ", and price lower than {upper:.2f} dollars",
    " for less than ${upper:.0f}",
    " under {upper:.0f} dollars",
    ", with a budget of {upper:.0f} dollars",
    " that costs no more than ${upper:.0f}",
    ", priced below {upper:.2f} dollars",
)
_OPTION_WORDS = {
    "color": "in {value}",
    "size": "in size {value}",
    "width": "in {value} width",
    "length": "{value} long",
    "capacity": "with {value} of memory",
    "compatible phone model": "for a {value}",
    "pack size": "as a {value}",
    "weight": "weighing {value}",
    "volume": "in the {value} bottle",
    "flavor": "in {value} flavor",
    "roast": "as {value}",
    "scent": "with {value} scent",
    "shade": "in the shade {value}",
    "frame size": "measuring {value}",
    "band size": "with a {value} band",
}


def split_range(split: str, total: int) -> tuple[int, int]:
    """Return first and last + 1 number of a split's goals, as published: test 0-499, val 500-1499, train from 1500."""
    first, last = {"test": (0, 500), "val": (500, 1500), "train": (1500, total)}[split]
    return min(first, total), min(last, total)


def split_of_goal(number: int) -> str:
    """Return the split of a goal's number."""
    return "test" if number < 500 else "val" if number < 1500 else "train"


def generate_goals(products: int, seed: int = 0) -> Iterator[Goal]:
    """Yield all goals of a generated catalogue of `products` products, in the order test, val, train."""
    kinds = load_taxonomy().kinds
    targets = draw_targets(f"webshop goals {seed}", products, lambda index: split_of_target(index, len(kinds)))
    for index, rng in targets:
        yield write_goal(generate_product(index, seed), kinds[index % len(kinds)], rng)


def draw_targets(
    name: str, products: int, split_of: Callable[[int], str | None]
) -> Iterator[tuple[int, random.Random]]:
    """Yield for each goal the number of the product that it asks for, and the generator to draw its words from."""
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
    """Return a goal that buying `product` with the right options meets in full.

    Args:
        product: what is wanted.
        kind: its kind.
        rng: the only source of chance.
        marks: the attributes that are asked for; by default up to three are drawn.
        limit: the price limit in dollars; by default one is drawn, or none.
    """
    before = load_taxonomy().before
    drawn = rng.sample(product.attributes, rng.randint(1, min(3, len(product.attributes))))
    attributes = marks or tuple(drawn)
    chosen = {axis: rng.choice(values) for axis, values in product.options.items() if rng.random() < 0.85}
    upper = price_limit(product.price, rng) if rng.random() < 0.8 else NO_LIMIT
    upper = upper if limit is None else limit
    adjectives = [text for text in attributes if text in before]
    nouns = [text for text in attributes if text not in before]
    noun = rng.choice([kind.name, kind.name, rng.choice(kind.heads).lower()])
    phrase = _join_before(adjectives, noun)
    details = [_OPTION_WORDS[axis].format(value=value) for axis, value in chosen.items()]
    if nouns:
        details.append(f"with {' and '.join(nouns)}" if rng.random() < 0.7 else f"that has {' and '.join(nouns)}")
    rng.shuffle(details)
    rest = "".join(f" {detail}" for detail in details[:1]) + "".join(f", {detail}" for detail in details[1:])
    price = rng.choice(PRICES).format(upper=upper) if upper < NO_LIMIT else ""
    sentence = rng.choice(FORMS).format(item=phrase, rest=rest, price=price)
    if rng.random() < 0.5:
        sentence = sentence[0].upper() + sentence[1:].replace(" i ", " I ").replace(" i'", " I'")
        sentence += "" if sentence.endswith("?") else "."
    return Goal.of(product, sentence, attributes, tuple(chosen.values()), upper)


def price_limit(price: float, rng: random.Random) -> float:
    """Return a limit from the published grid: of the first four multiples of 10 (up to 990) above `price`, two are
    drawn and the larger is taken; without two of them there is no limit."""
    grid = [10.0 * step for step in range(1, 100) if 10.0 * step > price][:4]
    return max(rng.sample(grid, 2)) if len(grid) >= 2 else NO_LIMIT


def split_of_target(index: int, kinds: int) -> str:
    """Return the split whose goals may ask for product `index`; it turns, so that each split meets every kind."""
    return {0: "test", 1: "val"}.get((index + index // kinds) % 10, "train")


def _join_before(adjectives: list[str], noun: str) -> str:
    """Return `a non slip, light weight rug`; plural nouns get no article."""
    words = f"{', '.join(adjectives)} {noun}".strip()
    plural = noun.endswith("s") and not noun.endswith(("ss", "sauce"))
    if plural:
        return words
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"

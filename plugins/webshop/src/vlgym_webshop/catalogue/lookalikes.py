"""A catalogue of look-alikes: groups of twelve products with the same indexed texts and options.

In a group each product has two of four marks, attributes that only its page of features names (no
title, description, first feature or option of any product of that kind does), once at a price
within the limit that goals of the group state, and once above it. A goal asks for both marks, so one
of the twelve meets it. Neither the search nor any text says which: prices stand on the pages of
results and products, marks on the pages of features. The twelve are in a drawn order, as the search
lists them.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations

from vlgym.env.seeding import SPLITS

from .generate import Kind, choose_compatible, load_taxonomy, write_product
from .records import Goal, Product
from .wishes import draw_targets, split_of_target, write_goal

LOOKALIKES_VERSION = 1  # bump it with every change of a product or goal

MARKS = 4  # attributes of a kind that tell the products of a group apart
GROUP = 12  # products of a group: six pairs of marks, each at two prices
STEP = 10  # price limits are multiples of this, in dollars


def seed_of_split(seed: int, split: str) -> int:
    """Return the seed of a split's catalogue: knowledge of one is no use in another."""
    return len(SPLITS) * seed + SPLITS.index(split)


def generate_lookalike(index: int, seed: int = 0) -> Product:
    """Return product `index`; its last two attributes are its marks."""
    group, place = divmod(index, GROUP)
    kind = load_taxonomy().kind_of(group)
    common, _ = share_attributes(kind)
    rng = random.Random(f"webshop look-alikes {seed} {group}")
    base = write_product(rng, replace(kind, attributes=common), index, seed)

    # Price and features are the product's; all else is the group's.
    marks, dear = arrange(group, seed)[place]
    own, limit = random.Random(f"webshop look-alike {seed} {index}"), limit_of(group, seed)
    dollars = (limit if dear else limit - STEP) + own.randint(1, STEP - 2)
    price = dollars + own.choice((0.99, 0.95, 0.49))
    sentences = load_taxonomy().sentences
    bullets = [*base.bullets[1:], *(f"{text.capitalize()}: {sentences[text]}" for text in marks)]
    own.shuffle(bullets)
    return replace(
        base,
        bullets=(base.bullets[0], *bullets),
        attributes=(*base.attributes, *marks),
        price=price,
        price_tag=f"${price:.2f}",
    )


def generate_lookalike_goals(products: int, seed: int = 0) -> Iterator[Goal]:
    """Yield all goals, in the order test, val, train; no two splits want products of one group."""

    def split_of(index: int) -> str | None:
        group, place = divmod(index, GROUP)
        return None if arrange(group, seed)[place][1] else split_of_target(group)

    for index, rng in draw_targets(f"webshop look-alike goals {seed}", products, split_of):
        group = index // GROUP
        product, limit = generate_lookalike(index, seed), float(limit_of(group, seed))
        kind = load_taxonomy().kind_of(group)
        yield write_goal(product, kind, rng, marks=product.attributes[-2:], limit=limit)


def share_attributes(kind: Kind) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the attributes that a kind's texts may tell, and its marks, which they never do."""
    return _share(kind.name, kind.attributes)


@lru_cache(maxsize=256)
def _share(name: str, attributes: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    rng = random.Random(f"webshop marks {name}")
    chosen = choose_compatible(attributes, len(attributes), rng)
    return chosen[MARKS:], chosen[:MARKS]


@lru_cache(maxsize=4096)
def arrange(group: int, seed: int = 0) -> tuple[tuple[tuple[str, str], bool], ...]:
    """Return for each place of a group its marks, and whether it is above the limit."""
    _, marks = share_attributes(load_taxonomy().kind_of(group))
    places = [(pair, dear) for pair in combinations(marks, 2) for dear in (False, True)]
    random.Random(f"webshop arrangement {seed} {group}").shuffle(places)
    return tuple(places)


def limit_of(group: int, seed: int = 0) -> int:
    """Return the price limit of a group's goals: a multiple of ten within the prices of its kind."""
    low, high = load_taxonomy().kind_of(group).price
    steps = range(max(1, int(low) // STEP + 1), max(2, int(high) // STEP + 1))
    return STEP * random.Random(f"webshop limit {seed} {group}").choice(steps)

"""The version that needs the picture: one of twelve look-alikes meets the goal, and no text says which."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from vlgym_webshop.catalogue.lookalikes import (
    GROUP,
    generate_lookalike,
    generate_lookalike_goals,
    limit_of,
    share_attributes,
)
from vlgym_webshop.catalogue.records import Goal, Product
from vlgym_webshop.catalogue.taxonomy import load_taxonomy
from vlgym_webshop.catalogue.wishes import split_range
from vlgym_webshop.reward import score_purchase
from vlgym_webshop.session import ITEM, Page

from vlgym.env.seeding import SPLITS, episode_seed
from vlgym.errors import UserError
from vlgym.registry.making import make

PRODUCTS = 240
"""Twenty groups: enough for each split, and quickly made."""

ID = "vlgym/WebShop-v1"


@pytest.fixture
def env(blank: None) -> Iterator[Any]:
    """The environment without its browser: these tests look at no picture."""
    made: Any = make(ID, products=PRODUCTS, image_size=(32, 32))
    yield made
    made.close()


def do(env: Any, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    return env.step(env.parser.format([action]))


def group_of(group: int) -> list[Product]:
    return [generate_lookalike(group * GROUP + place) for place in range(GROUP)]


def buy(product: Product, goal: Goal) -> float:
    return score_purchase(product, {str(place): value for place, value in enumerate(goal.options)}, goal).reward


def test_texts_of_a_group_are_the_same_to_the_letter_and_name_no_mark() -> None:
    for group, kind in enumerate(load_taxonomy().kinds):
        names, marks = share_attributes(kind)
        assert len(marks) == 4
        assert names
        assert not set(names) & set(marks)
        products = group_of(group)
        (document,) = {product.document() for product in products}
        assert not [mark for mark in marks if mark in document], kind.name
        assert len({product.asin for product in products}) == GROUP
        assert len({(product.attributes[-2:], product.price > limit_of(group)) for product in products}) == GROUP


def test_one_of_a_group_meets_a_goal_and_splits_share_no_group() -> None:
    place_of = {generate_lookalike(index).asin: index for index in range(PRODUCTS)}
    goals, places = list(islice(generate_lookalike_goals(PRODUCTS), 1700)), set()
    for goal in goals[:60]:
        index = place_of[goal.asin]
        products = group_of(index // GROUP)
        assert [product.asin for product in products if buy(product, goal) == 1.0] == [goal.asin]
        assert sum(product.price > goal.price_upper for product in products) == GROUP // 2
        assert set(goal.attributes) == set(products[index % GROUP].attributes[-2:])
        assert f"{goal.price_upper:.0f}" in goal.instruction
        places.add(index % GROUP)
    assert len(places) > 5  # the one that is wanted stands at no fixed place of its group
    groups = [{place_of[goal.asin] // GROUP for goal in part} for part in (goals[:500], goals[500:1500], goals[1500:])]
    assert all(groups)
    assert sum(map(len, groups)) == len(set().union(*groups))


def test_no_legal_action_is_a_ready_made_search_or_the_value_of_an_option(env: Any) -> None:
    env.reset(seed=episode_seed(ID, "test", 0))
    assert env.legal_actions() == ["search[words]"]
    _, _, _, _, info = do(env, "search[words]")
    assert info["vlgym"]["legal_actions"] == ["click[back to search]", "click[next >]"]
    env.page = Page(kind=ITEM, asin=env.goal.asin)
    do(env, "click[features]")
    observation, *_ = do(env, "click[< prev]")
    fixed = ["back to search", "< prev", "description", "features", "reviews", "buy now"]
    assert env.legal_actions() == [f"click[{name}]" for name in fixed]
    product = env.shop.catalogue.product(env.page.asin)
    clicks = observation["text"].rpartition("Legal actions:")[2]
    values = [value for values in product.options.values() for value in values]
    assert values
    assert not [value for value in values if f"click[{value}]" in clicks]
    _, _, _, _, info = do(env, f"click[{values[0]}]")
    assert not info["invalid_action"]
    assert values[0] in dict(env.page.options).values()
    assert do(env, "click[no such value]")[4]["invalid_action"]


def test_no_product_is_on_sale_in_two_splits(env: Any) -> None:
    sold = {}
    for split in SPLITS:
        env.reset(seed=episode_seed(ID, split, 0))
        first, last = split_range(split, env.shop.catalogue.goals)
        assert first <= env.goal_number < last
        sold[split] = {generate_lookalike(index, env.config.source.seed).asin for index in range(PRODUCTS)}
        assert env.goal.asin in sold[split]
        _, _, _, _, info = do(env, f"search[{env.goal.title}]")
        listed = {action[6:-1].upper() for action in info["vlgym"]["legal_actions"] if action.startswith("click[b0")}
        assert listed
        assert listed <= sold[split]
        other = env.goal_number
        env.reset(options={"goal": other})
        assert env.goal.asin in sold[split]
    assert sum(map(len, sold.values())) == len(set().union(*sold.values()))


def test_a_purchase_that_meets_a_part_of_the_wish_scores_and_is_not_paid(env: Any) -> None:
    env.reset(seed=episode_seed(ID, "test", 0))
    env.page = Page(kind=ITEM, asin=env.goal.asin)
    _, reward, terminated, _, info = do(env, "click[buy now]")
    assert terminated
    assert env.goal.options
    assert 0 < info["score"] < 100
    assert reward == 0
    env.partial_credit = True
    env.reset(seed=episode_seed(ID, "test", 0))
    env.page = Page(kind=ITEM, asin=env.goal.asin)
    _, reward, _, _, again = do(env, "click[buy now]")
    assert reward == again["score"] / 100 == info["score"] / 100


def test_a_level_names_the_number_of_options_and_one_that_is_absent_is_refused(env: Any) -> None:
    for level in (1, 2):
        for number in range(3):
            env.reset(seed=episode_seed(ID, "val", number), options={"level": level})
            assert len(env.goal.options) == level
    drawn = []
    for _ in range(2):
        env.reset(seed=episode_seed(ID, "val", 3))
        drawn.append(env.goal_number)
        env.reset(seed=episode_seed(ID, "val", 4), options={"level": 1})
    assert drawn[0] == drawn[1]
    env.wanted_options = 9
    with pytest.raises(UserError, match="no goal with 9 options"):
        env.start(env.np_random, {})

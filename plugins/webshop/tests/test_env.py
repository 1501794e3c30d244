"""The environments: episodes, splits, rewards, one browser under many, look-alikes."""

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from vlgym_webshop.blind import Guesser, Shopper
from vlgym_webshop.catalogue.generate import load_taxonomy
from vlgym_webshop.catalogue.lookalikes import (
    GROUP,
    generate_lookalike,
    generate_lookalike_goals,
    limit_of,
    share_attributes,
)
from vlgym_webshop.catalogue.records import Goal, Product
from vlgym_webshop.catalogue.wishes import split_range
from vlgym_webshop.reward import score_purchase
from vlgym_webshop.services import get_services
from vlgym_webshop.session import ITEM, Page

from vlgym.env.seeding import SPLITS, episode_seed
from vlgym.errors import UserError
from vlgym.parsers import get_parser, read_reply
from vlgym.registry.making import make, unwrap

ID = "vlgym/WebShop-v0"


def build(**kwargs: Any) -> Any:
    return unwrap(make(ID, **kwargs))


@pytest.fixture
def env() -> Iterator[Any]:
    made = build()
    yield made
    made.close()


def do(env: Any, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    return env.step(f"<action>{action}</action>")


def test_environments_share_one_browser_and_none_sees_another_s_page() -> None:
    envs, services = [build() for _ in range(3)], get_services()
    assert services.server is None
    assert services.windows.idle() == []
    before = services.windows.started
    for index, env in enumerate(envs):
        env.reset(seed=100 + index)
    assert len({env.task() for env in envs}) == 3
    assert services.windows.started == before + 1
    for env in envs:
        do(env, env.legal_actions()[0])
    alone = build()
    for index in (0, 2):
        alone.reset(seed=100 + index)
        do(alone, alone.legal_actions()[0])
        np.testing.assert_array_equal(alone.image(), envs[index].image())
    for env in [*envs, alone]:
        env.close()
    assert services.windows.idle() == []


@pytest.mark.usefixtures("blank")
def test_a_purchase_pays_the_published_reward_and_reports_its_parts(env: Any) -> None:
    env.reset(seed=episode_seed(ID, "test", 0), options={"goal": 2})
    goal = env.goal
    do(env, env.oracle() or "")
    do(env, f"click[{goal.asin.lower()}]")
    _, reward, terminated, truncated, info = do(env, "click[buy now]")
    terms = len(goal.attributes) + len(goal.options) + 1
    assert goal.options
    assert reward == pytest.approx((len(goal.attributes) + 1) / terms)
    assert (terminated, truncated, info["success"], info["purchased"]) == (True, False, False, True)
    parts = [info[f"{part}_score"] for part in ("attribute", "option", "type", "price")]
    assert parts == [1.0, 0.0, 1.0, 1.0]
    assert info["score"] == pytest.approx(100 * reward)


@pytest.mark.usefixtures("blank")
def test_the_seed_s_split_chooses_the_goal_and_argument_and_options_override_it(env: Any) -> None:
    for split in SPLITS:
        first, last = split_range(split, 12_087)
        for index in range(3):
            assert first <= env.reset(seed=episode_seed(ID, split, index))[1]["goal"] < last
    assert env.reset(seed=3)[1]["goal"] >= 1500  # a seed of nobody's split means train
    with closing(build(split="test")) as forced:
        assert forced.reset(seed=episode_seed(ID, "train", 0))[1]["goal"] < 500
    env.reset(seed=episode_seed(ID, "val", 0))
    assert 500 <= env.reset()[1]["goal"] < 1500  # without a seed the split goes on
    assert env.reset(options={"split": "test"})[1]["goal"] < 500
    with pytest.raises(UserError, match="must be an integer from 0 to 12086"):
        env.reset(options={"goal": 12_087})


def test_search_anywhere_reaches_the_rules() -> None:
    with closing(build(search_anywhere=True)) as free:
        assert free.shop.rules.search_anywhere


def test_a_list_that_is_too_long_keeps_buy_now(env: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlgym_webshop.env.LONGEST_LIST", 0)
    env.start(np.random.default_rng(0), {})
    env.page = Page(kind=ITEM, asin=env.goal.asin)
    assert env.legal_actions() == ["click[buy now]"]


def test_the_oracle_recovers_from_any_page(env: Any) -> None:
    rng = np.random.default_rng(0)
    for index in range(10):
        env.start(rng, {"split": "val"})
        for _ in range(int(rng.integers(1, 15))):
            legal = [action for action in env.legal_actions() if action != "click[buy now]"]
            env.act(legal[int(rng.integers(len(legal)))])
        for _ in range(20):
            outcome = env.act(env.match_action(env.oracle() or "") or "")
            if outcome.terminated:
                break
        assert outcome.reward == 1.0, index


@pytest.mark.parametrize("form", ["<action>**{}**.</action>", r"\boxed{{{}}}"])
def test_auto_reads_what_the_page_accepts_and_nothing_else(env: Any, form: str) -> None:
    env.start(np.random.default_rng(0), {"split": "val"})

    def read(action: str) -> Any:
        return read_reply(get_parser("auto"), form.format(action), env.legal_actions(), env.match_action)

    for action in ("search[a red mug, 3 pieces]", env.oracle() or ""):
        assert read(action).actions == (action,)
    for refused in ("click[no such product]", "search[]", "buy now"):
        assert read(refused).failure in ("no_action", "illegal_action")
    env.act(env.match_action(env.oracle() or "") or "")
    click = env.legal_actions()[-1]
    assert read(click).actions == (click,)
    assert read("search[mug]").failure


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"split": "dev"}, "split='dev' is not one of train, val, test"),
        ({"products": 5}, "products=5 must be >= 100"),
        ({"catalogue_seed": -1}, "must be >="),
        ({"nouns": "spacey", "products": 100}, "Nearest: spacy"),
    ],
)
def test_bad_arguments_are_refused_with_a_clear_word(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build(**kwargs).reset(seed=1)


def test_the_blind_shopper_buys_the_product_of_the_page_with_the_most_fitting_options() -> None:
    wish = "Instruction: i want a dark blue, extra large shirt, and price lower than 40.00 dollars\n"

    def clicks(*names: str) -> tuple[str, ...]:
        return tuple(f"click[{name}]" for name in names)

    fixed = clicks("back to search", "< prev", "description", "features", "reviews", "buy now")
    results = clicks("back to search", "next >", "b0aaaaaaaa", "b0bbbbbbbb")
    plain = (*fixed, *clicks("red", "small"))
    right = (*fixed, *clicks("blue", "dark blue", "extra large", "arge"))
    steps = [
        (("search[dark blue shirt]",), "search[dark blue shirt]"), (results, "click[b0aaaaaaaa]"),
        (plain, "click[< prev]"), (results, "click[b0bbbbbbbb]"), (right, "click[< prev]"),
        (results, "click[b0bbbbbbbb]"), (right, "click[blue]"), (right, "click[dark blue]"),
        (right, "click[extra large]"), (right, "click[buy now]"),
    ]  # fmt: skip
    player = Shopper(random.Random(0))
    assert [player.choose(wish, legal) for legal, _ in steps] == [action for _, action in steps]


def test_the_blind_guesser_tries_rows_of_words_and_has_turns_left_to_buy() -> None:
    wish = f"Instruction: I want a red mug, {' '.join('abcdefghjkmnpq')}, under $40.00\n"
    products, last = ("click[b0aaaaaaaa]", "click[b0bbbbbbbb]"), ("click[< prev]", "click[buy now]")
    player = Guesser(random.Random(0))
    played = [player.choose(wish, legal) for legal in (("search[words]",), products, *[last] * 48)]
    first = "search[red mug b c d e f g h j k m]"
    assert played[:4] == [first, products[0], "click[red]", "click[mug]"]
    assert {"click[red mug]", "click[b c d]", "click[buy now]"} <= set(played)


PRODUCTS = 240  # twenty groups: enough for each split, and quickly made

NEWER = "vlgym/WebShop-v1"


@pytest.fixture
def alike(blank: None) -> Iterator[Any]:
    """The environment without its browser: these tests look at no picture."""
    made: Any = make(NEWER, products=PRODUCTS, image_size=(32, 32))
    yield made
    made.close()


def group_of(group: int) -> list[Product]:
    return [generate_lookalike(group * GROUP + place) for place in range(GROUP)]


def buy(product: Product, goal: Goal) -> float:
    return score_purchase(product, dict(zip("abcdef", goal.options, strict=False)), goal).reward


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
        limit = limit_of(group)
        assert len({(each.attributes[-2:], each.price > limit) for each in products}) == GROUP


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
    parts = (goals[:500], goals[500:1500], goals[1500:])
    groups = [{place_of[goal.asin] // GROUP for goal in part} for part in parts]
    assert all(groups)
    assert sum(map(len, groups)) == len(set().union(*groups))


def test_no_legal_action_is_a_ready_made_search_or_the_value_of_an_option(alike: Any) -> None:
    alike.reset(seed=episode_seed(NEWER, "test", 0))
    assert alike.legal_actions() == ["search[words]"]
    _, _, _, _, info = do(alike, "search[words]")
    assert info["vlgym"]["legal_actions"] == ["click[back to search]", "click[next >]"]
    alike.page = Page(kind=ITEM, asin=alike.goal.asin)
    do(alike, "click[features]")
    observation, *_ = do(alike, "click[< prev]")
    fixed = ["back to search", "< prev", "description", "features", "reviews", "buy now"]
    assert alike.legal_actions() == [f"click[{name}]" for name in fixed]
    product = alike.shop.catalogue.product(alike.page.asin)
    clicks = observation["text"].rpartition("Legal actions:")[2]
    values = [value for values in product.options.values() for value in values]
    assert values
    assert not [value for value in values if f"click[{value}]" in clicks]
    _, _, _, _, info = do(alike, f"click[{values[0]}]")
    assert not info["invalid_action"]
    assert values[0] in dict(alike.page.options).values()
    assert do(alike, "click[no such value]")[4]["invalid_action"]


def test_no_product_is_on_sale_in_two_splits(alike: Any) -> None:
    sold = {}
    for split in SPLITS:
        alike.reset(seed=episode_seed(NEWER, split, 0))
        first, last = split_range(split, alike.shop.catalogue.goals)
        assert first <= alike.goal_number < last
        sold[split] = {generate_lookalike(index, alike.config.source.seed).asin for index in range(PRODUCTS)}
        assert alike.goal.asin in sold[split]
        _, _, _, _, info = do(alike, f"search[{alike.goal.title}]")
        actions = info["vlgym"]["legal_actions"]
        listed = {action[6:-1].upper() for action in actions if action.startswith("click[b0")}
        assert listed
        assert listed <= sold[split]
        alike.reset(seed=0, options={"goal": alike.goal_number})  # a seed of train
        assert alike.goal.asin in sold[split]
    assert sum(map(len, sold.values())) == len(set().union(*sold.values()))


def test_a_purchase_that_meets_a_part_of_the_wish_scores_and_is_not_paid(alike: Any) -> None:
    alike.reset(seed=episode_seed(NEWER, "test", 0))
    alike.page = Page(kind=ITEM, asin=alike.goal.asin)
    _, reward, terminated, _, info = do(alike, "click[buy now]")
    assert terminated
    assert alike.goal.options
    assert 0 < info["score"] < 100
    assert reward == 0


def test_a_level_names_the_number_of_options_and_one_that_is_absent_is_refused(alike: Any) -> None:
    for level in (1, 2):
        for number in range(3):
            alike.reset(seed=episode_seed(NEWER, "val", number), options={"level": level})
            assert len(alike.goal.options) == level
    drawn = []
    for _ in range(2):
        alike.reset(seed=episode_seed(NEWER, "val", 3))
        drawn.append(alike.goal_number)
        alike.reset(seed=episode_seed(NEWER, "val", 4), options={"level": 1})
    assert drawn[0] == drawn[1]
    _, last = split_range("val", alike.shop.catalogue.goals)
    alike.wanted_options = 3 - min(2, len(alike.shop.catalogue.goal(last - 1).options))
    alike.start(SimpleNamespace(integers=lambda first, last: last - 1), {"split": "val"})
    assert len(alike.goal.options) == alike.wanted_options  # the split's first, after its last
    alike.wanted_options = 9
    with pytest.raises(UserError, match="no goal with 9 options"):
        alike.start(alike.np_random, {})

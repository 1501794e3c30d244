"""The published reward, branch by branch, with numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from vlgym_webshop.catalogue.records import Goal, Product
from vlgym_webshop.nouns import load_tagger, tag_by_rule
from vlgym_webshop.reward import (
    COLOURS,
    count_attributes,
    count_options,
    is_alike,
    normalize_colour,
    score_purchase,
    title_score,
)

from vlgym.errors import UserError

BOOTS = Product(
    asin="B000000001",
    title="Bramford Hiking Boots for Trail",
    description="Keeps rain out. Freshly laced.",
    bullets=("Rubber sole that grips.", "Warm lining"),
    category="fashion",
    query="hiking boots",
    product_category="Clothing › Shoes › Boots",
    options={"color": ("navy blue", "tan"), "size": ("8", "9")},
    attributes=("water resistant", "arch support"),
    price=45.0,
    price_tag="$45.00",
)
GOAL = Goal(
    asin=BOOTS.asin,
    instruction="boots",
    attributes=("water resistant", "arch support"),
    options=("navy blue", "9"),
    price_upper=60.0,
    title=BOOTS.title,
    query=BOOTS.query,
    product_category=BOOTS.product_category,
)
ALL = {"color": "navy blue", "size": "9"}


def test_the_goal_s_product_with_all_options_below_the_limit_earns_one() -> None:
    score = score_purchase(BOOTS, ALL, GOAL)
    assert (score.reward, score.attributes, score.options, score.type, score.price, score.title) == (
        1.0,
        1.0,
        1.0,
        1.0,
        1.0,
        1.0,
    )


def test_each_attribute_option_and_the_price_is_one_term_of_the_sum() -> None:
    for product, chosen, terms in (
        (BOOTS, {}, 2 + 0 + 1),
        (BOOTS, {"size": "9"}, 2 + 1 + 1),
        (replace(BOOTS, attributes=("arch support",)), ALL, 1 + 2 + 1),
        (replace(BOOTS, price=60.01), ALL, 2 + 2 + 0),
        (replace(BOOTS, price=60.0), ALL, 2 + 2 + 1),
    ):
        assert score_purchase(product, chosen, GOAL).reward == pytest.approx(terms / 5)


@pytest.mark.parametrize(
    ("chosen", "wanted", "count"),
    [
        (["royal blue"], ["dark navy blue"], 1),  # both are `blue`
        (["tan"], ["titanium tan"], 1),
        (["shredded"], ["red"], 1),  # a colour word inside another word, as published
        (["black"], ["navy blue"], 0),
        (["pack of 2 pieces"], ["pack of 2"], 1),  # token sets
        (["8.5"], ["8"], 1),  # `8 5` holds the token `8`
        (["9"], ["8"], 0),
        ([], ["8"], 0),
        (["navy blue", "sky blue"], ["blue"], 1),  # each wanted option counts at most once
        (["blue"], ["navy blue", "sky blue"], 2),
    ],
)
def test_options_match_as_published(chosen: list[str], wanted: list[str], count: int) -> None:
    assert count_options(chosen, wanted) == count


def test_a_goal_without_options_or_attributes_is_judged_by_the_price() -> None:
    score = score_purchase(BOOTS, {}, replace(GOAL, attributes=(), options=()))
    assert (score.reward, score.attributes, score.options) == (1.0, 1.0, 1.0)


def test_no_common_noun_means_nothing_even_with_the_same_query_and_category() -> None:
    score = score_purchase(replace(BOOTS, title="Garlyn Sofa"), ALL, GOAL)
    assert (score.title, score.type, score.reward) == (0.0, 0.0, 0.0)


def test_a_title_score_below_a_tenth_pays_a_tenth_even_with_the_same_query() -> None:
    wanted = "boots lamp sofa mug chair rug camera phone candle cookie jar"  # 11 nouns
    score = score_purchase(BOOTS, ALL, replace(GOAL, title=wanted))
    assert score.title == pytest.approx(1 / 11)
    assert score.type == 0.1
    assert score.reward == pytest.approx(0.1)


def test_a_title_score_between_a_tenth_and_a_fifth_pays_half_without_query_and_category() -> None:
    other = replace(GOAL, title="boots lamp sofa mug chair rug", query="lamps", product_category="Home › Lamps › Desk")
    score = score_purchase(BOOTS, ALL, other)
    assert score.title == pytest.approx(1 / 6)
    assert score.type == 0.5
    assert score.reward == pytest.approx(0.5)


def test_the_same_query_or_two_shared_levels_make_up_for_a_low_title_score() -> None:
    low = replace(GOAL, title="boots lamp sofa mug chair rug")
    assert score_purchase(BOOTS, ALL, replace(low, product_category="x")).type == 1.0
    assert (
        score_purchase(BOOTS, ALL, replace(low, query="x", product_category="Shoes › Clothing › Sandals")).type == 1.0
    )
    assert score_purchase(BOOTS, ALL, replace(low, query="x", product_category="Shoes › Bags › Sandals")).type == 0.5


def test_a_goal_name_without_nouns_counts_as_a_fifth_which_alone_is_not_enough() -> None:
    nameless = replace(GOAL, title="3-in-1 for the new", query="x", product_category="y")
    assert title_score(BOOTS.title, nameless.title) == 0.2
    assert title_score("boots", "boots boots lamp") == pytest.approx(1 / 3)
    assert score_purchase(BOOTS, ALL, nameless).type == 0.5
    assert score_purchase(BOOTS, ALL, replace(nameless, query=BOOTS.query)).type == 1.0


def test_an_attribute_counts_from_attributes_title_bullets_or_description_and_from_nowhere_else() -> None:
    attributes = ("water resistant", "resistant water", "rubber sole", "hiking boots", "rain out")
    assert [count_attributes(BOOTS, [wanted]) for wanted in attributes] == [1] * len(attributes)
    assert [count_attributes(BOOTS, [wanted]) for wanted in ("memory foam", "boots, hiking")] == [0, 0]


def test_the_first_colour_of_the_alphabetic_list_wins() -> None:
    assert normalize_colour("dark navy blue") == "blue"
    assert normalize_colour("light grey") == "grey"
    assert normalize_colour("xx-large") == "xx-large"
    assert len(COLOURS) == len(set(COLOURS)) == 102
    assert list(COLOURS) == sorted(COLOURS)


def test_alike_means_more_than_85_after_rounding() -> None:
    assert is_alike("Machine-Washable!", "machine washable")
    assert not is_alike("abcdefgxyz", "abcdefghij")
    assert not is_alike("", "")


def test_the_noun_rule_leaves_out_function_words_adjectives_colours_and_numbers() -> None:
    assert tag_by_rule("Soft Blue Waterproof Rug for the Living Room, 5 x 8 ft") == ("rug", "living", "room")
    assert tag_by_rule("Foldable Table") == ("table",)


def test_a_missing_model_is_reported_with_its_command_and_auto_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("Can't find model")

    monkeypatch.setattr("vlgym_webshop.nouns._load_spacy", fail)
    assert load_tagger("auto", generated=False)[0] == "rules"
    with pytest.raises(UserError, match="spacy download"):
        load_tagger("spacy", generated=False)

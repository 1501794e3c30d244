"""The rules of the shop, and the published reward, with numbers worked out by hand."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from vlgym_webshop.catalogue.records import Goal, Product
from vlgym_webshop.oracle import missing_option, plan_action
from vlgym_webshop.reward import (
    COLOURS,
    count_attributes,
    count_options,
    load_tagger,
    score_purchase,
    tag_by_rule,
)
from vlgym_webshop.session import LONGEST_QUERY, Page, Rules, read_action

from vlgym.errors import UserError

LAMP = Product(
    "B0LAMP", "Lamp", "", (), "home", "lamps", "Home", {"color": ("red", "teal"), "size": ("small", "red")},
    ("bright",), 9.0, "$9",
)  # fmt: skip
FOUND = [f"B0{number:03d}" for number in range(12)]
RULES = Rules(search=lambda query: FOUND if query == "lamp" else [], product={"B0LAMP": LAMP}.__getitem__)
RESULTS = Page("results", "lamp")
ITEM = Page("item", "lamp", 2, "B0LAMP")


def test_each_page_offers_what_the_published_shop_does() -> None:
    assert RULES.clickables(Page()) == []
    assert RULES.clickables(RESULTS) == ["back to search", "next >", *(asin.lower() for asin in FOUND[:10])]
    assert RULES.clickables(Page("results", "lamp", 2)) == ["back to search", "< prev", "next >", "b0010", "b0011"]
    assert RULES.clickables(Page("results", "lamp", 3)) == ["back to search", "< prev", "next >"]
    expected = ["back to search", "< prev", "description", "features", "reviews", "red", "teal", "small", "buy now"]
    assert RULES.clickables(ITEM) == expected
    assert RULES.clickables(Page("detail", "lamp", 2, "B0LAMP", (), "features")) == ["back to search", "< prev"]
    assert RULES.clickables(Page("done", "lamp", 2, "B0LAMP")) == []
    named = replace(LAMP, options={"task": ("features", "buy now", "buy")})  # as buttons are
    rules = replace(RULES, product=lambda asin: named)
    assert rules.clickables(ITEM) == [*expected[:5], "buy", "buy now"]
    kinds = (Page(), RESULTS, ITEM, Page("done"))
    anywhere = Rules(RULES.search, RULES.product, search_anywhere=True)
    assert [RULES.accepts_search(page) for page in kinds] == [True, False, False, False]
    assert [anywhere.accepts_search(page) for page in kinds] == [True, True, True, False]


def test_clicks_lead_where_the_published_shop_leads() -> None:
    second = Page("results", "lamp", 2)
    assert RULES.after_click(RESULTS, "next >") == second
    assert RULES.after_click(second, "< prev") == RESULTS
    assert RULES.after_click(second, "b0lamp") == ITEM
    chosen = RULES.after_click(ITEM, "teal")
    assert chosen.options == (("color", "teal"),)
    assert RULES.after_click(chosen, "small").options == (("color", "teal"), ("size", "small"))
    assert RULES.after_click(ITEM, "red").options == (("size", "red"),)  # the last name counts
    detail = RULES.after_click(chosen, "features")
    assert (detail.kind, detail.detail) == ("detail", "features")
    assert RULES.after_click(detail, "< prev") == chosen
    assert RULES.after_click(chosen, "< prev") == second
    assert RULES.after_click(chosen, "back to search") == Page()
    assert RULES.after_click(chosen, "buy now") == Page("done", "lamp", 2, "B0LAMP", (("color", "teal"),))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("search[Red  Shoes]", ("search", "red shoes")), (" Click[ Buy Now ] ", ("click", "buy now")),
        ("click[a [b]]", ("click", "a [b]")), ("search[caf\u00e9 \u884c]", ("search", "cafe ?")),
        ("search[a\nb]", ("search", "a b")), (f"search[{'x' * 5000}]", ("search", "x" * LONGEST_QUERY)),
        ("search[]", None), ("search[ ]", None), ("buy[x]", None), ("I click[x]", None), ("click[x] now", None),
        ("click x", None), ("", None),
    ],
)  # fmt: skip
def test_the_action_grammar(text: str, expected: tuple[str, str] | None) -> None:
    assert read_action(text) == expected


BOOTS = Product(
    asin="B000000001", title="Bramford Hiking Boots for Trail", description="Keeps rain out. Freshly laced.",
    bullets=("Rubber sole that grips.", "Warm lining"), category="fashion", query="hiking boots",
    product_category="Clothing › Shoes › Boots", attributes=("water resistant", "arch support"),
    options={"color": ("navy blue", "tan"), "size": ("8", "9")}, price=45.0, price_tag="$45.00",
)  # fmt: skip
GOAL = Goal.of(BOOTS, "boots", ("water resistant", "arch support"), ("navy blue", "9"), 60.0)
ALL = {"color": "navy blue", "size": "9"}


@pytest.mark.parametrize(
    ("changes", "chosen", "terms"),
    [
        ({}, ALL, 5), ({}, {}, 2 + 0 + 1), ({}, {"size": "9"}, 2 + 1 + 1),
        ({"attributes": ("arch support",)}, ALL, 1 + 2 + 1),
        ({"price": 60.01}, ALL, 2 + 2 + 0), ({"price": 60.0}, ALL, 5),
    ],
)  # fmt: skip
def test_each_part_is_a_term(changes: dict[str, Any], chosen: dict[str, str], terms: int) -> None:
    assert score_purchase(replace(BOOTS, **changes), chosen, GOAL).reward == pytest.approx(terms / 5)


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
        (["abcdefgxyz"], ["abcdefghij"], 0),
        (["Machine-Washable!"], ["machine washable"], 1),
        ([], ["8"], 0),
        (["navy blue", "sky blue"], ["blue"], 1),  # each wanted option counts at most once
        (["blue"], ["navy blue", "sky blue"], 2),
    ],
)
def test_options_match_as_published(chosen: list[str], wanted: list[str], count: int) -> None:
    assert count_options(chosen, wanted) == count


def test_the_oracle_turns_to_the_page_of_its_product() -> None:
    shop, second = SimpleNamespace(search=RULES.search), replace(RESULTS, number=2)
    for place, page, name in (
        (9, RESULTS, "b0009"), (10, RESULTS, "next >"),
        (9, second, "< prev"), (10, second, "b0010"),
    ):  # fmt: skip
        assert plan_action(shop, replace(GOAL, asin=FOUND[place]), page) == f"click[{name}]"


def test_the_oracle_chooses_an_option_that_counts_where_the_wanted_one_is_not_offered() -> None:
    assert missing_option(BOOTS, replace(GOAL, options=("dark blue",)), ITEM) == "navy blue"


def test_a_goal_without_options_or_attributes_is_judged_by_the_price() -> None:
    score = score_purchase(BOOTS, {}, replace(GOAL, attributes=(), options=()))
    assert (score.reward, score.attributes, score.options) == (1.0, 1.0, 1.0)


SIX = "boots lamp sofa mug chair rug"  # nouns
ELEVEN = f"{SIX} camera phone candle cookie jar"
OTHER = {"query": "lamps", "product_category": "Home › Lamps › Desk"}


@pytest.mark.parametrize(
    ("changes", "title", "kind"),
    [
        ({}, 1.0, 1.0),
        ({"title": "Garlyn Sofa"}, 0.0, 0.0),  # no common noun, but query and category
        ({"title": ELEVEN}, 1 / 11, 0.1),  # below a tenth, likewise
        ({"title": SIX, **OTHER}, 1 / 6, 0.5),  # not above a fifth
        ({"title": SIX, "product_category": "x"}, 1 / 6, 1.0),  # the same query
        ({"title": SIX, "query": "x", "product_category": "Shoes › Clothing › X"}, 1 / 6, 1.0),  # two levels
        ({"title": SIX, "query": "x", "product_category": "Shoes › Bags › X"}, 1 / 6, 0.5),
        ({"title": "boots boots lamp", **OTHER}, 1 / 3, 1.0),  # repeats count in the goal's name
        ({"title": "3-in-1 for the new", **OTHER}, 0.2, 0.5),  # no noun at all
    ],
)
def test_the_type_score(changes: dict[str, str], title: float, kind: float) -> None:
    score = score_purchase(BOOTS, ALL, replace(GOAL, **changes))
    assert (score.title, score.type, score.reward) == (pytest.approx(title), kind, pytest.approx(kind))


def test_an_attribute_counts_from_attributes_and_texts_alone() -> None:
    attributes = ("water resistant", "resistant water", "rubber sole", "hiking boots", "rain out")
    assert [count_attributes(BOOTS, [wanted]) for wanted in attributes] == [1] * len(attributes)
    assert [count_attributes(BOOTS, [wanted]) for wanted in ("memory foam", "boots, hiking")] == [0, 0]


def test_the_colours_are_the_published_ones_in_the_order_of_the_alphabet() -> None:
    assert len(COLOURS) == len(set(COLOURS)) == 102
    assert list(COLOURS) == sorted(COLOURS)


def test_the_noun_rule_leaves_out_function_words_adjectives_colours_and_numbers() -> None:
    assert tag_by_rule("Soft Blue Waterproof Rug for the Living Room, 5 x 8 ft") == ("rug", "living", "room")
    assert tag_by_rule("Foldable Table") == ("table",)


def test_auto_takes_the_model_for_real_files_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("Can't find model")

    monkeypatch.setattr("vlgym_webshop.reward._load_spacy", fail)
    assert load_tagger("auto", generated=False)[0] == "rules"
    with pytest.raises(UserError, match="spacy download"):
        load_tagger("spacy", generated=False)
    monkeypatch.setattr("vlgym_webshop.reward._load_spacy", lambda: tag_by_rule)
    assert [load_tagger("auto", generated=each)[0] for each in (False, True)] == ["spacy", "rules"]

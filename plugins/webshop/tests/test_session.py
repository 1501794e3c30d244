"""The rules of the shop: which page accepts what, and where it leads."""

from __future__ import annotations

import pytest
from vlgym_webshop.catalogue.records import Product
from vlgym_webshop.session import LONGEST_QUERY, Page, Rules, read_action

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
    assert RULES.after_click(ITEM, "red").options == (("size", "red"),)  # two names have this value: the last counts
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

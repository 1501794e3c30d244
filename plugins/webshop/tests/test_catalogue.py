"""Catalogues, generated or from WebShop's files, their goals, and the search."""

import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vlgym_webshop.catalogue.build import CatalogueSource, open_catalogue
from vlgym_webshop.catalogue.files import read_array
from vlgym_webshop.catalogue.generate import generate_product
from vlgym_webshop.catalogue.wishes import COUNTS, NO_LIMIT, price_limit, split_of_goal, split_range
from vlgym_webshop.reward import score_purchase
from vlgym_webshop.search import SearchIndex, analyse
from vlgym_webshop.services import Shop

from vlgym.env.spaces import CHARSET
from vlgym.errors import UserError
from vlgym.files import find_cache
from vlgym.registry.making import make

DOCUMENTS = ("red shoe red", "blue shoe", "the green hat with feather")


def test_article_numbers_are_unique_and_texts_fit_the_observation_s_alphabet() -> None:
    products = [generate_product(index) for index in range(1000)]
    assert len({product.asin for product in products}) == 1000
    assert all(re.fullmatch(r"B0[0-9A-Z]{8}", product.asin) for product in products)
    assert generate_product(7, seed=1) != products[7]
    for product in products[:500]:
        options = [value for values in product.options.values() for value in values]
        texts = [product.title, product.description, *product.bullets, *options]
        assert set(CHARSET).issuperset("".join(texts))


def test_a_goal_states_all_that_counts_and_its_product_meets_it_in_full(shop: Shop) -> None:
    for number in range(0, shop.catalogue.goals, 97):
        goal = shop.catalogue.goal(number)
        product, text = shop.catalogue.product(goal.asin), goal.instruction.lower()
        options = product.options.items()
        chosen = {name: value for value in goal.options for name, values in options if value in values}
        assert score_purchase(product, chosen, goal).reward == 1.0, goal
        assert all(value in text for value in (*goal.attributes, *goal.options))
        assert goal.price_upper == NO_LIMIT or f"{goal.price_upper:.0f}" in text


def test_splits_have_the_published_sizes_and_want_different_products(shop: Shop) -> None:
    ranges = {split: split_range(split, shop.catalogue.goals) for split in COUNTS}
    assert ranges == {"test": (0, 500), "val": (500, 1500), "train": (1500, 12_087)}
    ends = [(split_of_goal(first), split_of_goal(last - 1)) for first, last in ranges.values()]
    assert ends == [(split, split) for split in COUNTS]
    wanted = [{shop.catalogue.goal(number).asin for number in range(*ends)} for ends in ranges.values()]
    assert sum(map(len, wanted)) == len(set().union(*wanted))
    assert len({shop.catalogue.product(asin).query for asin in wanted[0]}) == 48


def test_a_price_limit_is_the_larger_of_two_grid_values_above_the_price() -> None:
    limits = {price_limit(23.5, random.Random(seed)) for seed in range(200)}
    assert limits == {40.0, 50.0, 60.0}  # of 30, 40, 50, 60
    assert {price_limit(975.0, random.Random(seed)) for seed in range(20)} == {990.0}
    assert price_limit(985.0, random.Random(0)) == NO_LIMIT  # one value is left, two are needed


def test_two_processes_that_want_a_new_catalogue_at_once_get_the_same_complete_one() -> None:
    code = (
        "from vlgym_webshop.catalogue.build import CatalogueSource, open_catalogue\n"
        "catalogue = open_catalogue(CatalogueSource(products=150, seed=9))\n"
        "print(catalogue.goals, catalogue.goal(3).asin, catalogue.search('red mug')[0])"
    )
    command = [sys.executable, "-c", code]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=120)[0].split() for process in running]
    (folder,) = [path for path in find_cache("webshop").glob("generated-*-150-9*") if path.is_dir()]
    stamp = (folder / "catalogue.sqlite").stat().st_mtime_ns
    opened = open_catalogue(CatalogueSource(products=150, seed=9))
    assert outputs == [["12087", opened.goal(3).asin, opened.search("red mug")[0]]] * 2
    assert (folder / "catalogue.sqlite").stat().st_mtime_ns == stamp


def test_a_damaged_catalogue_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLGYM_CACHE", str(tmp_path))
    source = CatalogueSource(products=100)
    folder = tmp_path / "webshop" / source.name()
    folder.mkdir(parents=True)
    (folder / "catalogue.sqlite").write_bytes(b"this is not a database, but it looks like one" * 40)
    with pytest.raises(UserError, match="Delete that folder"):
        open_catalogue(source)


# ---- search: BM25 with Lucene's formula --------------------------------------------------------


def lucene(tf: int, df: int, length: int) -> float:
    """One term's score, written out from the formula: N 3, mean length 8/3, k1 0.9, b 0.4."""
    idf = math.log(1 + (3 - df + 0.5) / (df + 0.5))
    return idf * tf / (tf + 0.9 * (1 - 0.4 + 0.4 * length / (8 / 3)))


def test_scores_are_lucene_s_also_of_a_saved_index_which_is_memory_mapped(tmp_path: Path) -> None:
    index = SearchIndex.build(DOCUMENTS)
    scores = index.scores("red shoe")
    assert scores[0] == pytest.approx(0.907745, abs=1e-5)  # 0.980829 * 2 / 2.945 + 0.470004 / 1.945
    assert scores[1] == pytest.approx(0.259671, abs=1e-5)  # 0.470004 / 1.81
    assert scores[2] == 0.0
    assert scores[0] == pytest.approx(lucene(2, 1, 3) + lucene(1, 2, 3), abs=1e-6)
    index.save(tmp_path / "index")
    opened = SearchIndex.open(tmp_path / "index")
    np.testing.assert_array_equal(opened.scores("red shoe"), scores)
    assert isinstance(opened._model.scores["data"], np.memmap)


def test_stop_words_possessives_and_endings_are_removed() -> None:
    terms = analyse("The Women's running shoes, size 6.5, for the Office")
    assert terms == ["women", "run", "shoe", "size", "6.5", "offic"]


def test_at_most_fifty_results_come_best_first_and_ties_in_the_order_of_the_documents() -> None:
    assert SearchIndex.build(["mug", "red mug", "mug", "hat", "mug"]).search("mug") == [0, 2, 4, 1]
    index = SearchIndex.build(["mug"] * 80 + ["hat"])
    assert index.search("mug") == list(range(50))
    assert index.search("hat") == [80]
    assert [index.search(query) for query in ("", "the of", "zebra", "??", "<r>")] == [[]] * 5


def test_a_first_word_lists_a_category_a_query_or_an_attribute_as_published(shop: Shop) -> None:
    first = generate_product(0)
    for wanted in (f"<c> {first.category}", f"<q> {first.query}", f"<a> {first.attributes[0]}"):
        assert shop.search(wanted)[0] == first.asin


def item(asin: str, **changes: Any) -> dict[str, Any]:
    return {
        "asin": asin,
        "name": "Caf\u00e9 Table\u2122",
        "full_description": "A table.",
        "small_description": ["Solid  wood", "Four legs"],
        "category": "garden",
        "query": " Coffee Tables ",
        "product_category": "Home › Furniture › Tables",
        "pricing": "$49.99",
        "customization_options": {"Color": [{"value": " Red/Black "}, {"value": "Blue"}], "Size": None},
        **changes,
    }


ITEMS = [
    item("B01"), item("B02", pricing="$10.00 to $30.00", small_description="one bullet"),
    item("B02", name="repeated"), item("B03", pricing="", customization_options={}),
    item("ANUMBERTOOLONG"), item("nan"), item("B04", pricing="$1,299.00"),
]  # fmt: skip
ATTRIBUTES = {"B01": {"attributes": ["solid wood"], "instruction": None, "instruction_attributes": []}}


def wish(asin: str, instruction: str, attributes: list[str], options: Any) -> dict[str, Any]:
    wanted = {"instruction_attributes": attributes, "instruction_options": options}
    return {"asin": asin, "instruction": instruction, **wanted}


HUMAN = {
    "B01": [wish("B01", "find a wooden table.", ["solid wood"], ["red | black"]), wish("B01", "skipped", [], [])],
    "B04": [wish("B04", "an expensive table", ["solid wood"], {"Color": "blue"})],
    "ABSENT": [wish("ABSENT", "x", ["x"], [])],
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with WebShop's three files."""
    monkeypatch.setenv("VLGYM_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "items_shuffle_1000.json").write_text(json.dumps(ITEMS, indent=1))
    (folder / "items_ins_v2_1000.json").write_text(json.dumps(ATTRIBUTES))
    (folder / "items_human_ins.json").write_text(json.dumps(HUMAN))
    return folder


def test_products_are_read_as_published(data: Path) -> None:
    catalogue = open_catalogue(CatalogueSource(data=str(data)))
    assert catalogue.products == 4  # one repeated, one too long, one `nan`
    table = catalogue.product("b01")
    texts = (table.title, table.query, table.price, table.price_tag, table.rating)
    assert texts == ("Cafe TableTM", "coffee tables", 49.99, "$49.99", "N.A.")
    assert table.options == {"color": ("red | black", "blue")}
    assert table.bullets == ("Solid wood", "Four legs")
    assert table.attributes == ("solid wood",)
    assert table.picture == "table"
    ranged, unpriced, dear = (catalogue.product(asin) for asin in ("B02", "B03", "B04"))
    assert 10 <= ranged.price <= 30
    assert ranged.price_tag == "$10.0 to $30.0"
    assert ranged.bullets == ("one bullet",)
    assert ranged.attributes == ("DUMMY_ATTR",)
    assert (unpriced.price, unpriced.options) == (100.0, {})
    assert dear.price == 1299.0


def test_goals_are_the_human_ones_with_attributes_in_the_published_order(data: Path) -> None:
    catalogue = open_catalogue(CatalogueSource(data=str(data)))
    assert catalogue.goals == 2
    expected = ["B01", "B04"]
    random.Random(233).shuffle(expected)
    goals = [catalogue.goal(number) for number in range(2)]
    assert [goal.asin for goal in goals] == expected
    wooden = goals[expected.index("B01")]
    assert wooden.instruction == f"find a wooden table, and price lower than {wooden.price_upper:.2f} dollars"
    assert wooden.price_upper in (60.0, 70.0, 80.0)  # the larger of two of 50, 60, 70, 80
    assert wooden.options == ("red | black",)
    dear = goals[expected.index("B04")]
    assert (dear.instruction, dear.price_upper) == ("an expensive table", 1_000_000.0)
    assert dear.options == ("blue",)


@pytest.mark.usefixtures("blank")
def test_the_environment_plays_them(data: Path) -> None:
    env = make("vlgym/WebShop-v0", data=str(data))
    with pytest.raises(UserError, match="no goal in the split 'train'"):
        env.reset(seed=1)
    _, info = env.reset(seed=1, options={"goal": 0})
    for _ in range(12):
        _, reward, terminated, _, info = env.step(env.solve() or "")
        if terminated:
            break
    env.close()
    assert (reward, info["success"]) == (1.0, True)


def test_arrays_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlgym_webshop.catalogue.files._CHUNK", 7)
    values = [{"a": "x" * number, "b": [number, -1.5, None, "]},{"]} for number in range(20)] + [12345678, "end"]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(values, indent=2))
    assert list(read_array(path)) == values
    path.write_text(" [ ] ")
    assert list(read_array(path)) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("items_shuffle_1000.json", '{"a": 1}', "not a JSON array"),
        ("items_shuffle_1000.json", '[{"asin": "B01"', "is damaged"),
        ("items_shuffle_1000.json", '[{"asin": "B01"}]', "product 0 .B01. is malformed: KeyError: 'name'"),
        ("items_ins_v2_1000.json", "[]", "must hold an object"),
        ("items_human_ins.json", '{"B01": [{}]}', "instruction 0 of B01 is malformed"),
        ("items_human_ins.json", "{}", "no instruction for any of the products"),
    ],
)
def test_a_malformed_file_is_named(data: Path, name: str, content: str, message: str) -> None:
    (data / name).write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        open_catalogue(CatalogueSource(data=str(data)))
    assert name in str(caught.value)


def test_a_missing_file_is_named_and_a_changed_one_makes_a_new_catalogue(data: Path) -> None:
    source = CatalogueSource(data=str(data))
    before = source.name()
    (data / "items_ins_v2_1000.json").write_text(json.dumps({}))
    assert source.name() != before
    (data / "items_shuffle.json").touch()  # a full file comes before a small one
    with pytest.raises(UserError, match=r"items_shuffle\.json but not items_ins_v2\.json"):
        open_catalogue(source)
    (data / "items_shuffle.json").unlink()
    (data / "items_human_ins.json").unlink()
    with pytest.raises(UserError, match=r"not items_human_ins\.json"):
        open_catalogue(source)
    with pytest.raises(UserError, match="is not a folder"):
        open_catalogue(CatalogueSource(data=str(data / "nowhere")))

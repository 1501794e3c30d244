"""WebShop's own files: read as published, refused with a clear word where they are damaged."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from vlgym_webshop.catalogue.build import CatalogueSource, open_catalogue
from vlgym_webshop.catalogue.files import read_array

from vlgym.errors import UserError
from vlgym.registry.making import make


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


def wish(asin: str, instruction: str, attributes: list[str], options: list[str]) -> dict[str, Any]:
    wanted = {"instruction_attributes": attributes, "instruction_options": options}
    return {"asin": asin, "instruction": instruction, **wanted}


HUMAN = {
    "B01": [wish("B01", "find a wooden table.", ["solid wood"], ["red | black"]), wish("B01", "skipped", [], [])],
    "B04": [wish("B04", "an expensive table", ["solid wood"], [])],
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


@pytest.mark.usefixtures("blank")
def test_the_environment_plays_them(data: Path) -> None:
    env = make("vlgym/WebShop-v0", data=str(data), split="test")
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
    (data / "items_human_ins.json").unlink()
    with pytest.raises(UserError, match=r"not items_human_ins\.json"):
        open_catalogue(source)
    with pytest.raises(UserError, match="is not a folder"):
        open_catalogue(CatalogueSource(data=str(data / "nowhere")))

"""The generated catalogue, its goals, and the store that processes share."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from vlgym_webshop.catalogue.build import CatalogueSource, open_catalogue
from vlgym_webshop.catalogue.generate import generate_product
from vlgym_webshop.catalogue.wishes import COUNTS, NO_LIMIT, price_limit, split_range
from vlgym_webshop.reward import score_purchase
from vlgym_webshop.shop import Shop

from vlgym.env.spaces import CHARSET
from vlgym.errors import UserError
from vlgym.files import find_cache


def test_another_seed_makes_another_product() -> None:
    assert generate_product(7, seed=1) != generate_product(7, seed=0)


def test_article_numbers_are_unique_and_texts_fit_the_observation_s_alphabet() -> None:
    products = [generate_product(index) for index in range(1000)]
    assert len({product.asin for product in products}) == 1000
    assert all(re.fullmatch(r"B0[0-9A-Z]{8}", product.asin) for product in products)
    for product in products[:500]:
        options = [value for values in product.options.values() for value in values]
        assert set(CHARSET).issuperset("".join([product.title, product.description, *product.bullets, *options]))


def test_every_goal_is_met_in_full_by_the_product_it_was_written_for(shop: Shop) -> None:
    for number in range(0, shop.catalogue.goals, 97):
        goal = shop.catalogue.goal(number)
        product = shop.catalogue.product(goal.asin)
        chosen = {name: value for value in goal.options for name, values in product.options.items() if value in values}
        assert score_purchase(product, chosen, goal).reward == 1.0, goal


def test_an_instruction_states_every_attribute_option_and_limit(shop: Shop) -> None:
    for number in range(60):
        goal = shop.catalogue.goal(number)
        text = goal.instruction.lower()
        assert all(value in text for value in (*goal.attributes, *goal.options))
        assert (f"{goal.price_upper:.0f}" in text) == (goal.price_upper < NO_LIMIT) or goal.price_upper == NO_LIMIT


def test_splits_have_the_published_sizes_and_want_different_products(shop: Shop) -> None:
    assert shop.catalogue.goals == 12_087
    assert [split_range(split, 12_087) for split in ("test", "val", "train")] == [(0, 500), (500, 1500), (1500, 12_087)]
    wanted = {
        split: {shop.catalogue.goal(number).asin for number in range(*split_range(split, 12_087))} for split in COUNTS
    }
    assert not wanted["test"] & wanted["train"]
    assert not wanted["val"] & wanted["train"]
    assert not wanted["test"] & wanted["val"]
    kinds = len({shop.catalogue.product(asin).query for asin in wanted["test"]})
    assert kinds == 48


def test_a_price_limit_is_the_larger_of_two_grid_values_above_the_price() -> None:
    limits = {price_limit(23.5, random.Random(seed)) for seed in range(200)}
    assert limits == {40.0, 50.0, 60.0}  # of 30, 40, 50, 60
    assert {price_limit(975.0, random.Random(seed)) for seed in range(20)} == {990.0}
    assert price_limit(985.0, random.Random(0)) == NO_LIMIT  # one value is left, two are needed


def test_a_catalogue_is_made_once_and_opened_by_other_processes(shop: Shop) -> None:
    folder = shop.catalogue.folder
    stamp = (folder / "catalogue.sqlite").stat().st_mtime_ns
    code = (
        "from vlgym_webshop.catalogue.build import CatalogueSource, open_catalogue\n"
        "catalogue = open_catalogue(CatalogueSource())\nprint(catalogue.goal(3).asin, catalogue.search('red mug')[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == [shop.catalogue.goal(3).asin, shop.search("red mug")[0]]
    assert (folder / "catalogue.sqlite").stat().st_mtime_ns == stamp


def test_two_processes_that_want_a_new_catalogue_at_once_get_the_same_complete_one() -> None:
    code = (
        "from vlgym_webshop.catalogue.build import CatalogueSource, open_catalogue\n"
        "catalogue = open_catalogue(CatalogueSource(products=150, seed=9))\nprint(catalogue.products, catalogue.goals)"
    )
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=120)[0].split() for process in running] == [["150", "12087"]] * 2
    leftovers = [path.name for path in find_cache("webshop").glob("generated-*-150-9*") if path.is_dir()]
    assert len(leftovers) == 1


def test_a_damaged_cached_catalogue_is_named_with_its_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLGYM_CACHE", str(tmp_path))
    source = CatalogueSource(products=100)
    folder = tmp_path / "webshop" / source.name()
    folder.mkdir(parents=True)
    (folder / "catalogue.sqlite").write_bytes(b"this is not a database, but it is long enough to look like one" * 20)
    with pytest.raises(UserError, match="Delete that folder"):
        open_catalogue(source)


def test_sizes_and_seeds_out_of_range_are_refused() -> None:
    for products, seed in ((99, 0), (1_000_001, 0), (1000, -1)):
        with pytest.raises(UserError, match="must be >="):
            CatalogueSource(products, seed)

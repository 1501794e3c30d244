"""BM25 with Lucene's formula against scores worked out by hand, and the text analysis."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from vlgym_webshop.search import SearchIndex, analyse

DOCUMENTS = ("red shoe red", "blue shoe", "the green hat with feather")


def lucene(tf: int, df: int, length: int) -> float:
    """One term's score, written out from the formula: N 3, mean length 8/3, k1 0.9, b 0.4."""
    idf = math.log(1 + (3 - df + 0.5) / (df + 0.5))
    return idf * tf / (tf + 0.9 * (1 - 0.4 + 0.4 * length / (8 / 3)))


def test_scores_are_lucene_s() -> None:
    scores = SearchIndex.build(DOCUMENTS).scores("red shoe")
    assert scores[0] == pytest.approx(0.907745, abs=1e-5)  # 0.980829 * 2 / 2.945 + 0.470004 / 1.945
    assert scores[1] == pytest.approx(0.259671, abs=1e-5)  # 0.470004 / 1.81
    assert scores[2] == 0.0
    assert scores[0] == pytest.approx(lucene(2, 1, 3) + lucene(1, 2, 3), abs=1e-6)


def test_stop_words_possessives_and_endings_are_removed() -> None:
    assert analyse("The Women's running shoes, size 6.5, for the Office") == [
        "women",
        "run",
        "shoe",
        "size",
        "6.5",
        "offic",
    ]


def test_results_come_best_first_and_ties_in_the_order_of_the_documents() -> None:
    index = SearchIndex.build(["mug", "red mug", "mug", "hat", "mug"])
    assert index.search("mug") == [0, 2, 4, 1]


def test_at_most_fifty_results_and_only_documents_with_a_query_term() -> None:
    index = SearchIndex.build(["mug"] * 80 + ["hat"])
    assert index.search("mug") == list(range(50))
    assert index.search("hat") == [80]


@pytest.mark.parametrize("query", ["", "the of", "zebra", "??", "<r>"])
def test_a_query_without_known_terms_finds_nothing(query: str) -> None:
    assert SearchIndex.build(DOCUMENTS).search(query) == []


def test_a_saved_index_is_memory_mapped_and_gives_the_same_scores(tmp_path: Path) -> None:
    index = SearchIndex.build(DOCUMENTS)
    index.save(tmp_path / "index")
    opened = SearchIndex.open(tmp_path / "index")
    np.testing.assert_array_equal(opened.scores("green shoe"), index.scores("green shoe"))
    assert isinstance(opened._model.scores["data"], np.memmap)

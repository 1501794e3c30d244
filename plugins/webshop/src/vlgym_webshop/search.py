"""The search engine: BM25 with Lucene's formula (k1 0.9, b 0.4), scored by the bm25s library, without Java.

Score of a document d for a query q: sum over the query's terms t (repeated terms count again) of
 idf(t) * tf / (tf + k1 * (1 - b + b * |d| / mean |d|)),    idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5))

Text is analysed as by Lucene's English analyser: words, possessive `'s` removed, lower case, 33
stop words removed, Porter's stems. Two deviations from Lucene: document lengths are exact (Lucene
rounds them to one byte), and words are split by a regular expression, not by the Unicode rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import snowballstemmer

if TYPE_CHECKING:
    import bm25s

K1, B = 0.9, 0.4
HITS = 50  # most results of a search
PAGE = 10  # results of a page
_STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their "
    "then there these they this to was will with"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"[a-z0-9]+(?:[.'][a-z0-9]+)*")
_stemmer = snowballstemmer.stemmer("porter")
_lock = Lock()


def analyse(text: str) -> list[str]:
    """Return the index terms of a text, in order."""
    words = _WORD.findall(text.lower().replace("\u2019", "'"))
    words = [word.removesuffix("'s") for word in words]
    return [_stem(word) for word in words if word not in STOP_WORDS]


@cache
def _stem(word: str) -> str:
    with _lock:  # the stemmer keeps its word in itself, and server threads search too
        return _stemmer.stemWord(word)


class SearchIndex:
    """An inverted index over numbered documents; opened from a folder, processes share its memory."""

    def __init__(self, model: bm25s.BM25) -> None:
        self._model = model
        self._vocabulary: dict[str, int] = model.vocab_dict

    @classmethod
    def build(cls, documents: Iterable[str]) -> SearchIndex:
        """Index documents in order, of which at least one has a term; their positions number them."""
        import bm25s  # here, because it brings SciPy, which making an environment needs not

        vocabulary: dict[str, int] = {}
        numbered = [[vocabulary.setdefault(term, len(vocabulary)) for term in analyse(text)] for text in documents]
        model = bm25s.BM25(k1=K1, b=B, method="lucene", backend="numpy", csc_backend="numpy")
        model.index((numbered, vocabulary), create_empty_token=False, show_progress=False)
        return cls(model)

    def save(self, folder: Path) -> None:
        """Write the index to a folder."""
        self._model.save(str(folder), show_progress=False)

    @classmethod
    def open(cls, folder: Path) -> SearchIndex:
        """Open what `save` wrote, memory-mapped."""
        import bm25s

        return cls(bm25s.BM25.load(str(folder), mmap=True, load_vocab=True, show_progress=False, verbosity=0))

    def scores(self, query: str) -> np.ndarray:
        """Return the score of every document: `[N] float32`, 0 where no term occurs."""
        numbers = [self._vocabulary[term] for term in analyse(query) if term in self._vocabulary]
        if not numbers:
            return np.zeros(int(self._model.scores["num_docs"]), np.float32)
        return self._model.get_scores_from_ids(numbers)

    def search(self, query: str) -> list[int]:
        """Return the numbers of the best documents, best first; equals in their order, as in Lucene."""
        scores = self.scores(query)
        candidates = np.flatnonzero(scores > 0)
        order = np.argsort(-scores[candidates], kind="stable")
        return [int(number) for number in candidates[order][:HITS]]

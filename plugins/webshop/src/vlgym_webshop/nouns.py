"""Nouns of a product name, for the type score of the reward.

Published: words that spaCy's en_core_web_sm tags NOUN or PROPN. That model is a download, so by default
a rule stands in for it: every word of letters is a noun unless it is in a list of other words or ends
like an adjective or adverb. The rule is the same on every machine; `load_tagger("spacy")` uses the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from vlgym.errors import UserError, check_choice

from .catalogue.taxonomy import load_words

Tagger = Callable[[str], tuple[str, ...]]  # name of a product -> its nouns, in order, with repeats
MODEL = "en_core_web_sm"
_WORD = re.compile(r"[a-z][a-z'\-]*[a-z]")
_LISTS = ("function_words", "adjectives", "colours", "verbs", "units")
_NOT_NOUNS = frozenset(word for name in _LISTS for word in load_words(name))
_ENDINGS = (
    "able", "ible", "ful", "less", "ous", "ive", "ish", "ly", "proof", "resistant", "friendly", "sized",
)  # fmt: skip
_NOUNS_ALL_THE_SAME = frozenset(load_words("nouns"))


@lru_cache(maxsize=4096)
def tag_by_rule(name: str) -> tuple[str, ...]:
    """Return the nouns of a product name by the rule."""

    def is_noun(word: str) -> bool:
        other = word in _NOT_NOUNS or word.endswith(_ENDINGS)
        return word in _NOUNS_ALL_THE_SAME or not other

    return tuple(filter(is_noun, _WORD.findall(name.lower())))


def load_tagger(choice: str, generated: bool) -> tuple[str, Tagger]:
    """Return the name of the tagger used (`rules` or `spacy`) and the tagger.

    `auto` is spaCy's model for WebShop's files where it is installed, else the rule, so that scores of
    generated catalogues agree everywhere. A `UserError` says that `spacy` lacks its model.
    """
    check_choice("nouns", choice, ("auto", "rules", "spacy"))
    if choice == "rules" or (choice == "auto" and generated):
        return "rules", tag_by_rule
    try:
        return "spacy", _load_spacy()
    except (ImportError, OSError) as error:
        if choice == "auto":
            return "rules", tag_by_rule
        raise UserError(
            f"nouns='spacy' needs spaCy and its model {MODEL} ({error}). Install them with "
            f"`pip install spacy` and `python -m spacy download {MODEL}`, or use nouns='rules'."
        ) from error


@lru_cache(maxsize=1)
def _load_spacy() -> Tagger:
    import spacy

    pipeline = spacy.load(MODEL, disable=["ner", "parser", "lemmatizer"])

    @lru_cache(maxsize=4096)
    def tag(name: str) -> tuple[str, ...]:
        return tuple(token.text.lower() for token in pipeline(name) if token.pos_ in ("NOUN", "PROPN"))

    return tag

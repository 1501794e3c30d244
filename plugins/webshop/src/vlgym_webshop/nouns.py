"""Nouns of a product name, for the type score of the reward.

Published: words that spaCy's en_core_web_sm tags NOUN or PROPN. That model is a download, so by default a rule stands
in for it: every word of letters is a noun unless it is in a list of other words or ends like an adjective or adverb.
The rule is the same on every machine. `load_tagger("spacy")` uses the model itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from vlgym.errors import UserError, check_choice

Tagger = Callable[[str], tuple[str, ...]]
"""From a product name to its nouns, lower case, in order, repeats kept."""

CHOICES = ("auto", "rules", "spacy")
MODEL = "en_core_web_sm"

_WORD = re.compile(r"[a-z][a-z'\-]*[a-z]")
_FUNCTION_WORDS = (
    "a about above across after all along also although am among an and another any are around as at be because been "
    "before behind below beneath beside besides between beyond both but by can could did do does doing down during "
    "each either every few for from had has have having he her here hers him his how if in inside into is it its "
    "just like many may me might more most much must my near neither no nor not of off on once one only onto or "
    "other our out outside over own per same shall she should since so some such than that the their them then there "
    "these they this those through throughout till to too toward under until up upon us very via was we were what "
    "when where which while who whom whose why will with within without would you your yours two three four five six "
    "seven eight nine ten"
)
_ADJECTIVES = (
    "active adorable all-in-one ample average bare best better big bold brand-new breezy bright broad calm casual "
    "cheap chic classic clean clear close compact complete cool cozy crisp curly cute daily damp dark deep double "
    "dry durable early easy elastic elegant electric ergonomic essential everyday extra faint false fast faux fine "
    "firm fit flat flexible foldable formal free fresh full funny general gentle genuine gentle good grand great "
    "half handmade handy hard heavy high hot huge ideal individual insulated intense keen kind large lasting late "
    "lazy light lightweight little long loose loud low luxurious luxury matte medium mild mini modern multi narrow "
    "natural neat new nice non novel old open optimal organic original outdoor indoor perfect petite plain plus "
    "pocket polished portable practical premium pretty pro pure quick quiet rapid raw ready real relaxed rich right "
    "rigid robust rough round safe satin scented sharp sheer short silent simple single skinny sleek slim small "
    "smart smooth snug soft solid sour special square stable standard steady stiff straight stretchy strong sturdy "
    "stylish super sweet swift tall thick thin tight tiny tough trendy trim triple true ultra unique unscented vague "
    "vegan versatile vintage warm washable wet whole wide wireless woolen young"
)
_COLOURS = (
    "beige black blue bronze brown coral cream cyan gold golden gray green grey ivory khaki lavender maroon navy "
    "orange pink purple red silver tan teal turquoise violet white yellow"
)
_VERBS = (
    "adjust buy call enjoy find fits get give go keep love make makes play see set shop show take try use wear works"
)
_UNITS = "cm ft gb inch inches lb lbs mb mm oz pc pcs tb xl xs xxl"
_NOT_NOUNS = frozenset(" ".join((_FUNCTION_WORDS, _ADJECTIVES, _COLOURS, _VERBS, _UNITS)).split())
_ENDINGS = ("able", "ible", "ful", "less", "ous", "ive", "ish", "ly", "proof", "resistant", "friendly", "sized")
_LIKE_ADJECTIVES = (
    "table cable vegetable olive adhesive family jelly belly assembly dish fish radish polish relish supply butterfly"
)
_NOUNS_ALL_THE_SAME = frozenset(_LIKE_ADJECTIVES.split())


@lru_cache(maxsize=4096)
def tag_by_rule(name: str) -> tuple[str, ...]:
    """Return the nouns of a product name by the rule."""
    return tuple(word for word in _WORD.findall(name.lower()) if _is_noun(word))


def _is_noun(word: str) -> bool:
    if word in _NOUNS_ALL_THE_SAME:
        return True
    return word not in _NOT_NOUNS and not word.endswith(_ENDINGS)


def load_tagger(choice: str, generated: bool) -> tuple[str, Tagger]:
    """Return the name of the tagger used (`rules` or `spacy`) and the tagger.

    Args:
        choice: `rules`, `spacy`, or `auto`: the rule for generated catalogues (so that their scores agree
            everywhere), spaCy's model for WebShop's files where it is installed, else the rule.
        generated: whether the catalogue is a generated one.

    Raises:
        UserError: unknown choice, or `spacy` without the model.
    """
    check_choice("nouns", choice, CHOICES)
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

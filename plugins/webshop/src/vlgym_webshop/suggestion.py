"""A search made of an instruction by leaving out the words that say nothing of the product: what random play types."""

from __future__ import annotations

import re

LONGEST = 12
"""Words that are kept."""

_PRICE = re.compile(
    r"(?:,? (?:and )?price lower than [\d.]+ dollars|,? (?:for less than|under|priced below|that costs no more than"
    r"|with a budget of|below|less than)"
    r" \$?[\d.]+(?: dollars)?)"
)
_WORD = re.compile(r"[a-z0-9][a-z0-9.'&-]*[a-z0-9]|[a-z0-9]")
_FILLER_WORDS = (
    "a about after also am an and another any anything are as asked at be been birthday borrowing brother broke "
    "brother's but buy by can cart could daughter do doctor else fancy find for found friend friend's from get "
    "give going good hello help i i'd i'm i've if in interested is it it's its just keeps let's like list look "
    "looking love make makes me mine miss mother moving my myself necessary need needs next not nothing of office "
    "old on one or order out pick place please present promised put really recommended replace roommate run says "
    "search see saw sell shopping should show sister so some something still than that the them then there they "
    "thinking this to told trip trying us want wants was we week weekend what where which while will winter wish "
    "with would year you your happy have having house has i'll"
)
_FILLERS = frozenset(_FILLER_WORDS.split())


def suggest_search(instruction: str) -> str:
    """Return up to 12 telling words of an instruction, lower case, in order; the whole instruction if none is left."""
    text = _PRICE.sub(" ", instruction.lower())
    words = [word for word in _WORD.findall(text) if word not in _FILLERS]
    return " ".join(words[:LONGEST]) or " ".join(text.split()[:LONGEST]) or "gift"

"""Where a reply is over because a parser has what it asked for, in tokens.

What a parser asks for is its own business: `vlgym.parsers.find_end`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vlgym.parsers import Parser, find_end

from ..models.family import count_tokens

Decode = Callable[[Sequence[int]], str]
"""Text of a reply's ids, without special tokens."""


def find_token_end(decode: Decode, ids: Sequence[int], parsers: Sequence[Parser]) -> int | None:
    """Return after how many tokens a reply is over because a parser has what it asked for; None if none has."""
    text = decode(ids) if parsers else ""
    ends = [end for parser in parsers if (end := find_end(parser, text)) is not None]
    return count_tokens(decode, ids, min(ends)) if ends else None

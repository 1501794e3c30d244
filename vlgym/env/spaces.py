"""The two text spaces: what a model reads (`MessageSpace`) and what it may answer (`ReplySpace`).

Gymnasium's `Text` rejects most of what models write (alphanumeric by default, at least one
character), so replies get a subclass that contains every string up to its length.
"""

import multiprocessing
import re
import string
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory

from ..errors import UserError
from ..parsers.thoughts import MAX_REPLY
from ..types import Parser

CHARSET = "".join(sorted(set(string.printable) - set("\r\x0b\x0c\t")))  # of sampled texts
MAX_TEXT = 8192  # characters of the longest observation text

_DROPPED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")
"""Unicode's categories Cc (except the line feed), Cs and Co, whose ranges never change."""


class MessageSpace(spaces.Text):
    """Observation texts of at most `MAX_TEXT` characters of those that `clean_text` leaves."""

    def __init__(self, max_length: int = MAX_TEXT, seed: int | None = None) -> None:
        super().__init__(max_length=max_length, min_length=0, charset=CHARSET, seed=seed)

    def contains(self, x: Any) -> bool:
        """True if `x` is a string that `clean_text` returns as it is."""
        return isinstance(x, str) and clean_text(x, self.max_length) == x

    def __repr__(self) -> str:
        return f"MessageSpace({self.max_length})"


# Gymnasium 1.4 decodes `Text` from shared memory once, when the vector environment is built, so every
# later observation shows the text of that moment. For `MessageSpace` texts are stored as UTF-8 with a
# length, and read at each access.
_LENGTH_BYTES = 4
_CHARACTER_BYTES = 4  # UTF-8's most


class SharedTexts(Sequence[str]):
    """A live view of `n` texts in shared memory; copying it gives a plain tuple of strings."""

    def __init__(self, memory: Any, n: int, max_length: int) -> None:
        self._rows = _rows(memory, max_length)
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        row = self._rows[range(self._n)[index]]
        length = int(row[:_LENGTH_BYTES].view(np.int32)[0])
        return row[_LENGTH_BYTES : _LENGTH_BYTES + length].tobytes().decode("utf-8")

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        return f"SharedTexts({list(self)!r})"


@create_shared_memory.register(MessageSpace)
def _create(space: MessageSpace, n: int = 1, ctx: Any = multiprocessing) -> Any:
    return ctx.Array("B", n * _row_size(space.max_length))


@read_from_shared_memory.register(MessageSpace)
def _read(space: MessageSpace, shared_memory: Any, n: int = 1) -> SharedTexts:
    return SharedTexts(shared_memory, n, space.max_length)


@write_to_shared_memory.register(MessageSpace)
def _write(space: MessageSpace, index: int, values: str, shared_memory: Any) -> None:
    row = _rows(shared_memory, space.max_length)[index]
    data = np.frombuffer(values.encode("utf-8"), np.uint8)
    row[:_LENGTH_BYTES].view(np.int32)[0] = len(data)
    row[_LENGTH_BYTES : _LENGTH_BYTES + len(data)] = data


def _row_size(max_length: int) -> int:
    return _LENGTH_BYTES + _CHARACTER_BYTES * max_length


def _rows(memory: Any, max_length: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(memory.get_obj(), np.uint8).reshape(-1, _row_size(max_length))


class ReplySpace(spaces.Text):
    """Replies: any string up to `max_length` characters; samples take a legal action.

    The environment keeps `legal` current, so stepping with samples is the random baseline.
    """

    def __init__(self, parser: Parser, max_length: int = MAX_REPLY, seed: int | None = None) -> None:
        self.parser = parser
        self.legal: tuple[str, ...] | None = None
        super().__init__(max_length=max_length, min_length=0, charset=CHARSET, seed=seed)

    def contains(self, x: Any) -> bool:
        """True if `x` is a string of at most `max_length` characters, in any alphabet."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a reply with one legal action, drawn uniformly; without one if none is legal.

        Raises:
            UserError: the space is of no episode, as before the first reset and in a vector.
            ValueError: `mask` or `probability` is given.
        """
        if mask is not None or probability is not None:
            raise ValueError("ReplySpace.sample takes no mask: it draws from the legal actions already.")
        if self.legal is None:
            raise UserError(
                "This space knows no legal actions: an environment's own does from reset() on, a "
                "vector's does not. Take infos['vlgym']['legal_actions'], or wrap each environment in "
                "vlgym.wrappers.Numbers."
            )
        legal = self.legal or ("",)
        return self.parser.format([legal[int(self.np_random.integers(len(legal)))]])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReplySpace) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.max_length))

    def __repr__(self) -> str:
        return f"ReplySpace({self.max_length})"


def clean_text(text: str, max_length: int = MAX_TEXT) -> str:
    """Return `text` in the characters of `MessageSpace`, cut to `max_length`.

    Carriage returns become line feeds and tabs four blanks; other control characters, surrogates
    and private-use characters are dropped.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return _DROPPED.sub("", text)[:max_length]

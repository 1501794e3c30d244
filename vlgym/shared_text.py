"""Observation texts in the shared memory of Gymnasium's `AsyncVectorEnv`.

Gymnasium 1.4 decodes `Text` observations from shared memory once, when the vector environment is built, so every
later observation shows the text of that moment. Gymnasium lets custom spaces extend its shared-memory functions. This
module extends them for `MessageSpace`: it stores texts as ASCII bytes with a length, and reads them at each access.
`vlgym.env` imports it for that effect.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory

from .spaces import MessageSpace

_LENGTH_BYTES = 4


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
        return row[_LENGTH_BYTES : _LENGTH_BYTES + length].tobytes().decode("ascii")

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(self._n))

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
    data = np.frombuffer(values.encode("ascii"), np.uint8)
    row[:_LENGTH_BYTES].view(np.int32)[0] = len(data)
    row[_LENGTH_BYTES : _LENGTH_BYTES + len(data)] = data


def _row_size(max_length: int) -> int:
    return _LENGTH_BYTES + -(-max_length // _LENGTH_BYTES) * _LENGTH_BYTES


def _rows(memory: Any, max_length: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(memory.get_obj(), np.uint8).reshape(-1, _row_size(max_length))

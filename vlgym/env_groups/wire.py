"""Wire format between a learner and its workers: frames of JSON text and raw arrays, without code.

A frame is the length of the text (4 bytes, little-endian), the length of the arrays (8 bytes), the
text, the arrays one after the other. In the text, an object with one key that begins with `~` is of
a type that JSON lacks: `~t` a tuple, `~d` a dict by pairs, `~a` an array and `~s` a NumPy number,
both by type and shape. Objects of classes do not travel; nothing is ever unpickled.
"""

import json
import math
import socket
import struct
import time
from typing import Any

import numpy as np

from ..errors import UserError

PREFIX = struct.Struct("<IQ")
MOST_TEXT, MOST_BYTES = 1 << 20, 1 << 26  # of a frame; text takes up to 100 times its memory

_DTYPE_KINDS = frozenset("biuf")
_MARK = "~"
_DEEPEST = 64


class NonsenseError(ValueError):
    """The bytes that arrived are no frame."""


def pack(data: Any) -> bytes:
    """Return a frame; `UserError` where it would be too long, or data is not plain or an array."""
    arrays: list[Any] = []
    text = _write(data, arrays)
    sizes = len(text), sum(len(part) for part in arrays)
    if why := _explain_length(*sizes):
        raise UserError(f"This cannot be sent to another process: {why}.")
    return b"".join([PREFIX.pack(*sizes), text, *arrays])


def unpack(frame: bytes | bytearray) -> Any:
    """Return the data of a frame, whose memory arrays share; `NonsenseError` where it is none."""
    try:
        text, arrays = _read_sizes(frame)
        if PREFIX.size + text + arrays != len(frame):
            raise NonsenseError("it is cut off")

        # Arrays are taken in their order, and every byte belongs to one.
        place, end = [0], PREFIX.size + text
        data = _decode(json.loads(frame[PREFIX.size : end]), memoryview(frame)[end:], place, 0)
        if place[0] != arrays:
            raise NonsenseError("it has more bytes than its arrays")
        return data
    except NonsenseError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, struct.error) as error:
        raise NonsenseError(f"{type(error).__name__}: {error}") from None


def receive(connection: socket.socket, limit: float | None = None) -> Any:
    """Read a frame, in at most `limit` seconds, and return its data.

    Raises:
        NonsenseError: it is no frame, or longer than one may be.
        EOFError: the other side has closed the connection.
        OSError: it does not answer in time, or has ended.
    """
    end = None if limit is None else time.monotonic() + limit
    prefix = read_bytes(connection, PREFIX.size, end)
    return unpack(prefix + read_bytes(connection, sum(_read_sizes(prefix)), end))


def read_bytes(connection: socket.socket, size: int, end: float | None) -> bytearray:
    """Read that many bytes before `end` of the monotonic clock; errors as of `receive`."""
    data, got = bytearray(size), 0
    while got < size:
        connection.settimeout(None if end is None else max(end - time.monotonic(), 1e-3))
        count = connection.recv_into(memoryview(data)[got:])
        if count == 0:
            raise EOFError
        got += count
    return data


def _read_sizes(frame: bytes | bytearray) -> tuple[int, int]:
    text, arrays = PREFIX.unpack_from(frame)
    if why := _explain_length(text, arrays):
        raise NonsenseError(why)
    return text, arrays


def _explain_length(text: int, arrays: int) -> str:
    fits = text <= MOST_TEXT and arrays <= MOST_BYTES
    return "" if fits else f"text of {text} bytes (limit {MOST_TEXT}), arrays of {arrays} (limit {MOST_BYTES})"


def packed_alike(a: Any, b: Any) -> bool:
    """True if two pieces of plain data are packed alike; arrays count by type and shape."""
    return _write(a, []) == _write(b, [])


def _write(data: Any, arrays: list[Any]) -> bytes:
    return json.dumps(_encode(data, arrays, 0), separators=(",", ":")).encode("ascii")


def _encode(value: Any, arrays: list[Any], depth: int) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if depth > _DEEPEST:
        raise UserError(f"Data nested more than {_DEEPEST} deep cannot be sent to another process.")
    depth += 1
    if kind is list:
        return [_encode(item, arrays, depth) for item in value]

    # What JSON lacks has a tag.
    if kind is tuple:
        return {"~t": [_encode(item, arrays, depth) for item in value]}
    if kind is dict:
        if all(type(key) is str and not key.startswith(_MARK) for key in value):
            return {key: _encode(item, arrays, depth) for key, item in value.items()}
        return {"~d": [[_encode(each, arrays, depth) for each in pair] for pair in value.items()]}
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in _DTYPE_KINDS:
        array = np.ascontiguousarray(value)
        arrays.append(array.reshape(-1).view(np.uint8).data if array.size else b"")
        tag = "~s" if isinstance(value, np.generic) else "~a"
        return {tag: [value.dtype.str, list(np.shape(value))]}
    raise UserError(
        f"A {kind.__module__}.{kind.__qualname__} cannot be sent to another process; what is sent are numbers, texts, "
        "lists, tuples, dicts and NumPy arrays."
    )


def _decode(value: Any, arrays: memoryview, place: list[int], depth: int) -> Any:
    if not isinstance(value, (list, dict)):
        return value
    if depth > _DEEPEST:
        raise NonsenseError(f"data nested more than {_DEEPEST} deep")
    depth += 1
    if isinstance(value, list):
        return [_decode(item, arrays, place, depth) for item in value]

    # One key with a mark is the tag of what JSON lacks.
    if len(value) == 1:
        ((key, content),) = value.items()
        if key == "~t":
            return tuple(_decode(item, arrays, place, depth) for item in content)
        if key == "~d":
            return {_decode(name, arrays, place, depth): _decode(item, arrays, place, depth) for name, item in content}
        if key in ("~a", "~s"):
            array = _read_array(content, arrays, place)
            return array[()] if key == "~s" else array
    if any(key.startswith(_MARK) for key in value):
        raise NonsenseError("an unknown tag")
    return {key: _decode(item, arrays, place, depth) for key, item in value.items()}


def _read_array(content: Any, arrays: memoryview, place: list[int]) -> Any:
    name, shape = content
    dtype = np.dtype(str(name))
    if dtype.kind not in _DTYPE_KINDS or any(type(n) is not int or n < 0 for n in shape):
        raise NonsenseError("an array of another kind")
    size = dtype.itemsize * math.prod(shape)
    start, place[0] = place[0], place[0] + size
    if place[0] > len(arrays):
        raise NonsenseError("an array is cut off")
    return np.frombuffer(arrays[start : place[0]], dtype).reshape(shape)

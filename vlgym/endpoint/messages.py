"""What goes to an endpoint and what comes back: neutral messages become its JSON, its JSON becomes a reply's parts.

An answer that is none raises `BadAnswerError`.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

import numpy as np

from ..errors import UserError
from ..installing import how_to_install
from ..rendering import data_url
from ..types import Image, Message

KEY = "OPENAI_API_KEY"
NO_KEY = "none"
"""Sent where there is no key: a local server wants none, but the protocol has a place for it."""
LOCAL = ("localhost", "127.0.0.1", "::1")
"""Hosts that no proxy is asked for."""


def check_url(url: str) -> None:
    """Check an address."""
    try:
        split = urlsplit(url)
        valid = split.scheme in ("http", "https") and bool(split.hostname) and split.port != 0
    except ValueError:  # a port that is no number
        valid = False
    if not valid:
        raise UserError(f"--base-url {_without_secrets(url)} is no address; it looks like http://127.0.0.1:8000/v1.")


def read_key(variable: str, url: str | None) -> str:
    """Return the key, or an empty string where a server was named that may want none."""
    key = os.environ.get(variable, "").strip()
    if not key and (url is None or variable != KEY):
        raise UserError(
            f"There is no key in the environment variable {variable}. Set it, name another one by --api-key-env, or "
            "a server that needs none by --base-url."
        )
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"What the environment variable {variable} holds is no key: it has characters that none has.")
    return key


def open_client(
    url: str | None, key: str, concurrency: int, timeout: float, max_retries: int
) -> tuple[Any, Any, str, list[str]]:
    """Return the client, its connections (`reached`: there was an answer), the address for lines and records, and
    what these must not show.

    The client repeats what may pass: a broken connection, a status such as 429 or 500, an answer that is none, and one
    that takes longer than `timeout` as a whole.
    """
    try:
        import httpx2
        import openai
    except ImportError as error:
        missing = error.name or "openai"
        raise UserError(f"openai:MODEL needs the package {missing}: {how_to_install('vlgym[eval]')}") from None

    class Client(openai.DefaultAsyncHttpxClient):
        """Makes failures that the package would not repeat errors that it repeats."""

        reached = False

        async def send(self, request: Any, **how: Any) -> Any:
            try:
                async with asyncio.timeout(timeout):
                    response = await super().send(request, **how)
            except TimeoutError:
                raise httpx2.ReadTimeout("", request=request) from None
            except httpx2.ConnectError as error:
                if self.reached:  # it went away, and may come back
                    raise
                raise openai.APIConnectionError(request=request) from error
            self.reached = True
            if response.status_code == 200:
                try:
                    read_answer(response.content)
                except BadAnswerError as error:
                    raise httpx2.DecodingError(f"its answer is {error}", request=request) from None
            return response

    split = urlsplit(url or "")
    login = (unquote(split.username or ""), unquote(split.password or "")) if "@" in split.netloc else None
    plain = urlunsplit(split._replace(netloc=split.netloc.rpartition("@")[2], query="", fragment="")) if url else None
    query = dict(parse_qsl(split.query))
    limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    http = Client(auth=login, limits=limits, timeout=timeout, trust_env=split.hostname not in LOCAL)
    client = openai.AsyncOpenAI(
        base_url=plain, api_key=key or NO_KEY, max_retries=max_retries, timeout=timeout, http_client=http,
        default_query=query,
    )  # fmt: skip
    secrets = {key, split.password or "", *(login or ())[1:], *query.values()} - {""}
    return client, http, _without_secrets(str(client.base_url)), sorted(secrets, key=len, reverse=True)


def _without_secrets(url: str) -> str:
    """Return an address, even one that is none, without user, password and query, and without a slash at its end."""
    front, found, rest = url.partition("://")
    place = (rest if found else front).rpartition("@")[2].partition("?")[0].partition("#")[0].rstrip("/")
    return f"{front}://{place}" if found else place


class BadAnswerError(Exception):
    """What the server sent under status 200 is no chat completion."""


@dataclass(frozen=True)
class Answer:
    """What a chat completion says.

    Attributes:
        text: the model's text; empty where it wrote none. Where it refused in a field of its own, that text.
        cut: the limit of tokens ended it.
        refused: the model, or a filter before it, declined.
        prompt_tokens: as the server counts them; 0 where it does not say.
        completion_tokens: the same for the answer.
        model: what the server calls the model that answered; empty where it does not say.
    """

    text: str
    cut: bool = False
    refused: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""


def write_picture(image: Image) -> str:
    """Return `data:image/png;base64,...` of `[H, W, 3] uint8`; a picture of the history is encoded once."""
    return _write_picture(image.shape, image.tobytes())


@functools.lru_cache(maxsize=256)
def _write_picture(shape: tuple[int, ...], data: bytes) -> str:
    return data_url(np.frombuffer(data, np.uint8).reshape(shape))


def write_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages of the chat completions protocol, in the same order.

    What holds a picture is a list of parts; what holds none is a plain string, which every server takes.
    """
    return [{"role": message["role"], "content": _write_content(message["content"])} for message in messages]


def _write_content(parts: Sequence[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return [
        {"type": "text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "image_url", "image_url": {"url": write_picture(part["image"])}}
        for part in parts
    ]


def read_answer(data: bytes) -> Answer:
    """Read a chat completion; only its first choice counts, and a text of reasoning beside the answer does not.

    Raises:
        BadAnswerError: it is no JSON, or none of this shape; the message shows how it begins.
    """
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise BadAnswerError(f"no JSON: {show(data)}") from None
    choices = body.get("choices") if isinstance(body, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or not {"message", "finish_reason"} & choice.keys():
        raise BadAnswerError(f"no chat completion: {show(data)}")
    message = choice.get("message") or {}
    if not isinstance(message, dict):
        raise BadAnswerError(f"no chat completion: {show(data)}")
    text, refusal = _read_content(message.get("content"), data), message.get("refusal")
    reason = choice.get("finish_reason")
    refusal = refusal if isinstance(refusal, str) else ""
    model, usage = body.get("model"), body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Answer(
        _without_surrogates(text or refusal),
        reason == "length",
        bool(refusal) or reason == "content_filter",
        _read_count(usage.get("prompt_tokens")),
        _read_count(usage.get("completion_tokens")),
        show(model) if isinstance(model, str) else "",
    )


def show(said: str | bytes, width: int = 240) -> str:
    """Return the beginning of what a server said as one line without control characters."""
    text = said[: 4 * width].decode("utf-8", "replace") if isinstance(said, bytes) else said[: 4 * width]
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= width and len(said) <= 4 * width else f"{line[: width - 3].rstrip()}..."


def _read_content(content: Any, data: bytes) -> str:
    """Return the text of a message's content: a string, nothing, or a list of parts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise BadAnswerError(f"no chat completion: {show(data)}")
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type", "text") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _without_surrogates(text: str) -> str:
    """Replace halves of characters, which JSON can hold and UTF-8 cannot: they could not be written to a record."""
    return text.encode("utf-8", "replace").decode()


def _read_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12 else 0

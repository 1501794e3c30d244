"""How an endpoint is reached: its key, its address and the client of the `openai` package."""

from __future__ import annotations

import asyncio
import os
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from ..errors import UserError
from ..installing import how_to_install
from .messages import BadAnswerError, read_answer

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

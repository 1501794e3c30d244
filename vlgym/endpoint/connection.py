"""How an endpoint is reached: its key, its address and the client of the `openai` package. Sends nothing itself."""

from __future__ import annotations

import functools
import os
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from ..errors import UserError
from ..installing import how_to_install

KEY = "OPENAI_API_KEY"
NO_KEY = "none"
"""Sent where there is no key: a local server wants none, but the protocol has a place for it."""
LOCAL = ("localhost", "127.0.0.1", "::1")
"""Hosts that no proxy is asked for."""
LANE = 8
"""Most connections of one client."""


def check_url(url: str) -> None:
    """Check an address.

    Raises:
        UserError: it is none of a web server.
    """
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


def open_clients(url: str | None, key: str, concurrency: int, timeout: float) -> tuple[list[Any], str, list[str]]:
    """Return the clients to ask by, one for each request that may be under way, and what is said of them.

    They retry nothing. Up to `LANE` places share a client: its pool looks at each of its idle connections for each
    request, so that one pool for hundreds of requests would take more time than all the rest.

    Returns:
        `concurrency` clients, some of them the same; the address for lines and records; what these must not show.

    Raises:
        UserError: the package `openai` is missing.
    """
    try:
        import httpx2
        import openai
    except ImportError as error:
        missing = error.name or "openai"
        raise UserError(f"openai:MODEL needs the package {missing}: {how_to_install('vlgym[eval]')}") from None

    split = urlsplit(url or "")
    login = (unquote(split.username or ""), unquote(split.password or "")) if "@" in split.netloc else None
    plain = urlunsplit(split._replace(netloc=split.netloc.rpartition("@")[2], query="", fragment="")) if url else None
    query = dict(parse_qsl(split.query))

    def open_one() -> Any:
        http = openai.DefaultAsyncHttpxClient(
            auth=login,
            limits=httpx2.Limits(max_connections=LANE + 1, max_keepalive_connections=LANE),
            timeout=httpx2.Timeout(timeout),
            trust_env=split.hostname not in LOCAL,
            verify=_load_certificates(),
        )
        return openai.AsyncOpenAI(
            base_url=plain, api_key=key or NO_KEY, max_retries=0, timeout=httpx2.Timeout(timeout), http_client=http,
            default_query=query,
        )  # fmt: skip

    lanes = [open_one() for _ in range(-(-concurrency // LANE))]
    secrets = {key, split.password or "", *(login or ())[1:], *query.values()} - {""}
    address = _without_secrets(str(lanes[0].base_url))
    return [lanes[place // LANE] for place in range(concurrency)], address, sorted(secrets, key=len, reverse=True)


@functools.cache
def _load_certificates() -> Any:
    """Load what https is checked by, once: it takes longer than everything else here."""
    import httpx2

    return httpx2.create_ssl_context()


def _without_secrets(url: str) -> str:
    """Return an address, even one that is none, without user, password and query, and without a slash at its end."""
    front, found, rest = url.partition("://")
    place = (rest if found else front).rpartition("@")[2].partition("?")[0].partition("#")[0].rstrip("/")
    return f"{front}://{place}" if found else place

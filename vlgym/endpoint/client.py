"""The HTTP client of an endpoint: its address and key, limits of time and size, what it repeats."""

import ipaddress
import os
import re
import socket
import zlib
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from ..errors import UserError
from ..registry.installing import how_to_install
from .completion import BadAnswerError, Hide, excerpt, lasts, read_answer
from .secrets import hide_login, make_hide

KEY = "OPENAI_API_KEY"
NO_KEY = "none"  # sent without a key: the protocol has a place for one
MOST_REDIRECTS = 5
REPEATED = "x-stainless-retry-count"  # header of the `openai` package: repetitions so far
ABOUT_LENGTH = ("content-encoding", "content-length", "transfer-encoding")
COMPLETIONS = "/chat/completions"  # end of the address of requests; the client adds it


def check_url(url: str) -> None:
    """Raise `UserError` where an address is no URL of a server."""
    try:
        split = urlsplit(url)
        valid = split.scheme in ("http", "https") and bool(split.hostname) and split.port != 0
    except ValueError:  # a port that is no number
        valid = False
    if not valid:
        raise UserError(f"--base-url {hide_login(url)} is not a URL; it must look like http://127.0.0.1:8000/v1.")


def split_address(model: str, url: str | None = None) -> tuple[str, str | None]:
    """Return name and address of `MODEL@URL`; the given address where it is a name alone.

    >>> split_address("org/m@http://127.0.0.1:8000/v1")
    ('org/m', 'http://127.0.0.1:8000/v1')
    """
    match = re.fullmatch(r"(.*?)@(https?://.+)", model.strip())
    return (match[1].strip(), match[2]) if match else (model.strip(), url)


def plain_address(name: str) -> str:
    """Return the name of a policy, `openai:MODEL@URL`, without secrets of its address.

    >>> plain_address("openai:m@http://me:password@127.0.0.1:8000/v1?key=secret")
    'openai:m@http://127.0.0.1:8000/v1'
    """
    model, url = split_address(name)
    return f"{model}@{hide_login(url)}" if url else name


def read_key(variable: str, url: str | None) -> str:
    """Return the key, or an empty text where a server was named that may want none."""
    key = os.environ.get(variable, "").strip()
    if not key and (url is None or variable != KEY):
        raise UserError(
            f"The environment variable {variable} holds no key. Set it, name another one with --policy-arg "
            "api_key_env=NAME, or name a server that needs no key with --base-url."
        )
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"The environment variable {variable} holds no valid key: a key is printable ASCII.")
    return key


def open_client(
    url: str | None, key: str, concurrency: int, timeout: float, max_retries: int, most: int,
    secrets: Iterable[str] = (),
) -> tuple[Any, Any, str, Hide]:  # fmt: skip
    """Return the client, its connections, its address for records and a secret-hiding function.

    `reached` of the connections is true after an answer; `proxy` is the environment's, if used.
    The client repeats failures that may pass: a broken connection, a status such as 429 or 500,
    a bad answer, one over `most` bytes, or one that takes over `timeout`. It goes to no other host.
    """
    import asyncio

    try:
        import httpx2
        import openai
    except ImportError as error:
        missing = error.name or "openai"
        raise UserError(f"openai:MODEL needs the package {missing}: {how_to_install('vlgym[eval]')}") from None

    class Client(openai.DefaultAsyncHttpxClient):
        """Turns failures that the package would not retry into errors that it retries."""

        reached, proxy = False, ""

        async def send(self, request: Any, **how: Any) -> Any:
            try:
                async with asyncio.timeout(timeout):
                    response = await self.follow(request, **how)
            except TimeoutError:
                raise httpx2.ReadTimeout("", request=request) from None
            except httpx2.ConnectError as error:
                if self.reached:  # it went away, and may come back
                    raise
                raise openai.APIConnectionError(request=request) from error

            # Some servers send 500 for failures that last, and 200 for failures that pass.
            self.reached = True
            repeated = request.headers.get(REPEATED, "0") != "0"
            if response.status_code >= 500 and lasts(response.text) and repeated:
                response.headers["x-should-retry"] = "false"
            if response.status_code == 200:
                try:
                    response.extensions["answer"] = read_answer(response.content, hide)
                except BadAnswerError as error:
                    raise httpx2.DecodingError(f"its answer is {error}", request=request) from error
            return response

        async def follow(self, request: Any, **how: Any) -> Any:
            """Send a request, follow redirects on its host, and read the answer to the limit."""
            how |= {"stream": True, "follow_redirects": False}
            for _ in range(MOST_REDIRECTS):
                response = await super().send(request, **how)
                try:
                    data = await read_limited(response, most)
                except BadAnswerError as error:
                    raise httpx2.DecodingError(f"its answer is {error}", request=request) from None
                finally:
                    await response.aclose()
                following = response.next_request
                if following is None or not is_same_host(request.url, following.url):
                    break
                request = following

            # The body is unpacked, so headers on its packing are wrong.
            headers = [each for each in response.headers.multi_items() if each[0] not in ABOUT_LENGTH]
            return httpx2.Response(response.status_code, headers=headers, content=data, request=request)

    # Login and query of the address travel apart from it: errors name it.
    split, hide = urlsplit(url or ""), make_hide(url or "", key, secrets)
    login = (unquote(split.username or ""), unquote(split.password or "")) if "@" in split.netloc else None
    place = {"netloc": split.netloc.rpartition("@")[2], "path": split.path.rstrip("/").removesuffix(COMPLETIONS)}
    plain = urlunsplit(split._replace(**place, query="", fragment="")) if url else None

    # No proxy stands between this machine and itself.
    limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    try:
        http = Client(
            auth=login, limits=limits, timeout=timeout, trust_env=not is_own(split.hostname or ""),
            headers={"Accept-Encoding": "gzip, deflate"},
        )  # fmt: skip
    except (ImportError, ValueError) as error:  # of the proxy's scheme
        raise UserError(f"The environment's proxy {find_proxy(url or 'https://')} cannot be used: {error}") from None
    client = openai.AsyncOpenAI(
        base_url=plain, api_key=key or NO_KEY, max_retries=max_retries, timeout=timeout, http_client=http,
        default_query=dict(parse_qsl(split.query)),
    )  # fmt: skip
    http.proxy = find_proxy(str(client.base_url))
    return client, http, hide_login(str(client.base_url)), hide


def is_own(host: str) -> bool:
    """True if a host is this machine, by its name or by an address that can be bound here."""
    name = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(name)
        family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as place:
            place.bind((name, 0))
        return True
    except ValueError:
        return name in ("localhost", socket.gethostname().lower()) or name.endswith(".localhost")
    except OSError:
        return address.is_loopback


def find_proxy(url: str) -> str:
    """Return the environment's proxy for an address, without its login, if there is one."""
    from urllib.request import getproxies, proxy_bypass  # takes longer than the rest of this module

    split, known = urlsplit(url), getproxies()
    if is_own(split.hostname or "") or proxy_bypass(split.hostname or ""):
        return ""
    return hide_login(known.get(split.scheme) or known.get("all", ""))


async def read_limited(response: Any, most: int) -> bytes:
    """Return an answer's unpacked body; `BadAnswerError` where either form is over `most` bytes."""
    data = bytearray()
    async for part in response.aiter_raw():
        data += part
        if len(data) > most:
            raise BadAnswerError(f"longer than {most} bytes (--policy-arg max_answer_bytes)")

    # A few bytes may unpack to gigabytes: unpacking stops at the limit, too.
    for coding in reversed(response.headers.get_list("content-encoding", split_commas=True)):
        if coding.strip().lower() == "identity":
            continue
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip and deflate
        try:
            data = bytearray(unpack.decompress(data, most + 1))
        except zlib.error:
            raise BadAnswerError(f"no {excerpt(coding, 40)}") from None
        if len(data) > most:
            raise BadAnswerError(f"longer than {most} bytes when unpacked (--policy-arg max_answer_bytes)")
    return bytes(data)


def is_same_host(url: Any, other: Any) -> bool:
    """True if an address leads to the same server, or to its encrypted port."""
    ports = ((url.scheme, url.port), ("https", None))
    return bool(url.host == other.host and (other.scheme, other.port) in ports)

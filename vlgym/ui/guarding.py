"""Who may ask, and what the browser may do with the answer. One piece of ASGI middleware around everything.

- On loopback the name that was asked for must be loopback's own: a page elsewhere cannot make its own name point here.
- Elsewhere a token is needed. A link carries it once (`?token=`); from then on a cookie does, which no other site can
  use.
- A request that another site makes is refused, unless it is a person who follows a link. What changes something
  (everything but GET and HEAD) must say that it comes from a page of this server.
- The browser is told to load nothing from elsewhere and to run no script of a page's own.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .settings import Settings, is_loopback

COOKIE = "vlgym_token"
QUERY = "token"
LARGEST_BODY = 1_000_000  # bytes
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # `no-referrer` would take the origin from forms, by which they are known
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


class Guard:
    """Lets through what `find_refusal` finds nothing against.

    Args:
        app: everything else.
        settings: of the server.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no page has a socket
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        answer = self._let_in(scope, headers) or _refuse(self.settings, scope["method"], headers)
        await (answer or self.app)(scope, _limit(receive), send_guarded)

    def _let_in(self, scope: Scope, headers: Headers) -> Response | None:
        """Return nothing for who knows the token; who brings it in a link gets the cookie and is sent on."""
        token = self.settings.token
        if token is None or _same(_read_cookie(headers), token):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] == "GET" and any(name == QUERY and _same(value, token) for name, value in query):
            rest = urlencode([(name, value) for name, value in query if name != QUERY])
            place = "/" + scope["path"].lstrip("/\\")  # `//elsewhere` would be another server
            answer = RedirectResponse(place + (f"?{rest}" if rest else ""), status_code=303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
            return answer
        return PlainTextResponse("This page needs the token: open the link that `vlgym ui` printed.", 401)


def _refuse(settings: Settings, method: str, headers: Headers) -> Response | None:
    why = find_refusal(settings, method, headers)
    return None if why is None else PlainTextResponse(f"Refused: {why}", 403)


def find_refusal(settings: Settings, method: str, headers: Headers) -> str | None:
    """Return why a request is not answered, or `None`."""
    host = headers.get("host", "")
    if settings.local and not is_loopback(_name_of(host)):
        return "this server answers to localhost and 127.0.0.1 only."
    site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
    if method in ("GET", "HEAD"):
        own = site in (None, "none", "same-origin")
        return None if own or mode == "navigate" else "another site asked for it."
    if site not in (None, "none", "same-origin"):
        return "another site sent it."
    origin = headers.get("origin")
    if origin is None or urlsplit(origin).netloc != host or not host:
        return "it does not come from a page of this server."
    return None


def _name_of(host: str) -> str:
    """The name of `name:port`."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _read_cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _limit(receive: Receive) -> Receive:
    """Stop reading what is larger than any form here."""
    held = 0

    async def receive_some() -> Message:
        nonlocal held
        message = await receive()
        held += len(message.get("body", b""))
        return message if held <= LARGEST_BODY else {"type": "http.disconnect"}

    return receive_some

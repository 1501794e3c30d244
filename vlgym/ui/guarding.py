"""Who may ask, and what the browser may do with the answer. One piece of middleware around everything.

- Whoever asks must know the token: the printed link carries it once (`?token=`), from then on a cookie does, which no
  other site can use.
- The name that was asked for must be loopback's own: a page elsewhere cannot make its own name point here.
- A request that another site makes is refused, unless it is a person who follows a link. What changes something
  (everything but GET and HEAD) must say that it comes from a page of this server.
- The browser is told to load nothing from elsewhere and to run no script of a page's own.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp

NAMES = ("localhost", "127.0.0.1")
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


class Guard(BaseHTTPMiddleware):
    """Lets through who knows the token, and what `find_refusal` finds nothing against."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        super().__init__(app)
        self.token = token

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Answer one request."""
        why = find_refusal(request.method, request.headers)
        if why is not None:
            answer: Response = PlainTextResponse(f"Refused: {why}", 403)
        else:
            answer = self._ask_token(request) or await call_next(request)
        answer.headers.update(HEADERS)
        answer.headers.setdefault("cache-control", "no-store")
        return answer

    def _ask_token(self, request: Request) -> Response | None:
        """Return nothing for who knows the token; who brings it in a link gets the cookie and is sent on."""
        cookie = f"vlgym_{request.url.port}"  # servers on other ports of the machine share its cookies
        if not self.token or _same(request.cookies.get(cookie, ""), self.token):
            return None
        if request.method == "GET" and _same(request.query_params.get("token", ""), self.token):
            place = "/" + request.url.path.lstrip("/\\")  # `//elsewhere` would be another server
            query = request.url.remove_query_params("token").query
            answer = RedirectResponse(f"{place}?{query}" if query else place, 303)
            answer.set_cookie(cookie, self.token, httponly=True, samesite="strict")
            return answer
        return PlainTextResponse("This page needs the token: open the link that `vlgym ui` printed.", 401)


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def find_refusal(method: str, headers: Headers) -> str | None:
    """Return why a request is not answered, or `None`."""
    host = headers.get("host", "")
    if host.partition(":")[0] not in NAMES:
        return "this server answers to localhost and 127.0.0.1 only."
    site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
    own = site in (None, "none", "same-origin")
    if method in ("GET", "HEAD"):
        return None if own or mode == "navigate" else "another site asked for it."
    if not own:
        return "another site sent it."
    origin = headers.get("origin")
    return None if origin and urlsplit(origin).netloc == host else "it does not come from a page of this server."

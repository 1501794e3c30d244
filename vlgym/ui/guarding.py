"""Access control of the pages, and limits on a browser, in one middleware.

- A request must carry the token: the printed link has it once (`?token=`), then a cookie.
- A request that changes something must come from a page of this server: to a browser, servers on
  other ports are the same site.
- The browser loads nothing from elsewhere and runs no script of a page's own.
"""

import hmac
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from starlette.exceptions import HTTPException
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from ..errors import UserError, plain_line
from ..reports import writing

STATIC = writing.TEMPLATES / "static"
LOG = "log.jsonl"


def render_page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page: a template with its values."""
    text = writing.render(template, path=request.url.path, **values)
    return HTMLResponse(text.encode("utf-8", "replace"), status)  # halves of characters


async def show_error(request: Request, error: Exception) -> Response:
    """Return the page of an error, with a line on it."""
    if isinstance(error, HTTPException):
        status, line = error.status_code, str(error.detail)
    elif isinstance(error, UserError):
        status, line = 400, plain_line(str(error), 2000)
    else:
        status, line = 500, "This page failed; what happened stands in the terminal of `vlgym ui`."
    return render_page(request, "error.html", status, status_code=status, line=line)


def open_inside(root: Path, name: str) -> BinaryIO:
    """Open a plain file of a folder; `OSError` for a link or anything outside."""
    if "\0" in name:
        raise OSError("a file name with a zero byte")
    path = root / name
    if root.resolve() not in path.resolve().parents:
        raise OSError(f"{name!r} is outside of its folder")
    # A link in the last place is refused by the system, and a pipe is not waited for.
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{name!r} is no plain file")
    return os.fdopen(number, "rb")


PAGE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # `no-referrer` would take the origin from forms
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


class PageGuard(BaseHTTPMiddleware):
    """Lets a request through if it has the token and, to change something, is of this server."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        super().__init__(app)
        self.token = token

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        own = f"http://{request.headers['host']}"
        if request.method in ("GET", "HEAD") or request.headers.get("origin") == own:
            answer = self._ask_token(request) or await call_next(request)
        else:
            answer = PlainTextResponse("Refused: it does not come from a page of this server.", 403)
        for name, value in {**PAGE_HEADERS, "cache-control": "no-store"}.items():
            answer.headers.setdefault(name, value)
        return answer

    def _ask_token(self, request: Request) -> Response | None:
        """Return `None` for a request with the cookie; a link with the token gets the cookie."""
        port = request.headers["host"].partition(":")[2]
        cookie = f"vlgym_{port}"  # servers on other ports of the machine share its cookies
        if _same(request.cookies.get(cookie, ""), self.token):
            return None
        if request.method == "GET" and _same(request.query_params.get("token", ""), self.token):
            # The whole address: after the host name `//elsewhere` is no other server.
            answer = RedirectResponse(request.url.remove_query_params("token"), 303)
            answer.set_cookie(cookie, self.token, httponly=True, samesite="strict")
            return answer
        return PlainTextResponse("This page needs the token: open the link that `vlgym ui` printed.", 401)


def _same(text: str, token: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), token.encode())

"""Templates, and errors as pages. Every value that a template shows is escaped: there is no other way to show one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..errors import UserError, plain_line

HERE = Path(__file__).parent
TEMPLATES, STATIC = HERE / "templates", HERE / "static"

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
    trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip


def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page: a file of `templates/` with its values."""
    text = _ENVIRONMENT.get_template(template).render(path=request.url.path, **values)
    return HTMLResponse(text.encode("utf-8", "replace"), status)  # a record may hold half of a surrogate pair


async def show_error(request: Request, error: Exception) -> Response:
    """Return the page of an error: what is wrong, in a line."""
    if isinstance(error, HTTPException):
        status, line = error.status_code, str(error.detail)
    elif isinstance(error, UserError):
        status, line = 400, plain_line(str(error), 2000)
    else:
        status, line = 500, "This page failed; what happened stands in the terminal of `vlgym ui`."
    return render(request, "error.html", status, status_code=status, line=line)

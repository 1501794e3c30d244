"""Whether a page is one that cannot do anything: the board copies pages of others only if they are.

A report's page holds text, tables, drawings and pictures, no script and nothing from outside. This checks that of a
page's own text, whoever wrote it.
"""

from __future__ import annotations

from html.parser import HTMLParser

TAGS = frozenset(
    {
        "html", "head", "meta", "title", "style", "body", "main", "header", "footer", "section", "h1", "h2", "h3", "p",
        "b", "span", "code", "pre", "a", "mark", "div", "table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd",
        "details", "summary", "img", "svg", "rect", "line", "path",
    }
)  # fmt: skip
ATTRIBUTES = frozenset(
    {
        "lang", "charset", "content", "name", "class", "id", "scope", "role", "alt", "open", "x", "y", "x1", "x2",
        "y1", "y2", "width", "height", "d", "viewbox", "preserveaspectratio", "aria-hidden", "aria-label", "data-label",
    }
)  # fmt: skip
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
START = (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
)
"""How a report's page begins; what the browser may do from there on is decided."""


def find_harm(page: str) -> str | None:
    """Return what in a page a report never has, or `None` where there is nothing."""
    if not page.startswith(START):
        return "it does not begin as a report does"
    reader = _Reader()
    reader.feed(page[len(START) :])
    reader.close()
    return reader.found


class _Reader(HTMLParser):
    """Looks at every tag; `found` is the first that does not belong there."""

    def __init__(self) -> None:
        super().__init__()
        self.found: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self._note(f"a tag <{tag}>")
        for name, value in attrs:
            link = (tag, name) == ("a", "href") and (value or "").startswith("#")
            picture = (tag, name) == ("img", "src") and (value or "").startswith("data:image/")
            if name not in ATTRIBUTES and not link and not picture:
                self._note(f"an attribute {name} of <{tag}>")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "style" and self.cdata_elem == "style" and ("@import" in data or "url(" in data):
            self._note("a style that loads something")

    def handle_decl(self, decl: str) -> None:
        self._note("a second declaration")

    def handle_comment(self, data: str) -> None:
        self._note("a comment")

    def handle_pi(self, data: str) -> None:
        self._note("an instruction")

    def unknown_decl(self, data: str) -> None:
        self._note("an unknown declaration")

    def _note(self, what: str) -> None:
        self.found = self.found or what

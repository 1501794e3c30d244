"""The shop's web server: a Flask application behind Werkzeug, on the loopback interface, in a thread.

Stateless: a page is a function of its address. `python -m vlgym_webshop` serves it for a person.
"""

import json
import logging
from collections.abc import Callable, Mapping
from socket import socket
from threading import Thread
from typing import Any
from urllib.parse import quote, urlencode

from flask import Flask, Response, abort, render_template, request
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from ..catalogue.records import Goal, Product
from ..services import Shop
from ..session import BACK, BUY, DETAIL, DETAILS, DONE, ITEM, NEXT, PREVIOUS, RESULTS, SEARCH, Page
from .pictures import draw_picture

HOST = "127.0.0.1"
POLICY = (
    "default-src 'none'; connect-src 'self'; form-action 'self'; img-src data:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)
"""Content policy of every page: nothing is loaded from anywhere else."""

_TILES = (
    ("Shoes", "shoe", "navy"), ("Clothing", "hoodie", "wine"), ("Bags", "backpack", "green"),
    ("Audio", "headphones", "teal"), ("Home", "sofa", "mustard"), ("Kitchen", "mug", "denim"),
    ("Snacks", "bag", "orange"), ("Beauty", "lipstick", "ruby"),
)  # fmt: skip
_LABELS = {BACK: "Back to Search", PREVIOUS: "< Prev", NEXT: "Next >"}


class ShopServer:
    """Serves any number of shops until `close`; a shop's name is the first part of its addresses."""

    def __init__(self, port: int = 0) -> None:
        self.shops: dict[str, Shop] = {}
        self._app = Flask(__package__)
        self._app.jinja_env.trim_blocks = self._app.jinja_env.lstrip_blocks = True
        kinds = ", ".join((SEARCH, RESULTS, ITEM, DETAIL, DONE))
        self._app.add_url_rule(f"/<shop>/<int:goal>/<any({kinds}):kind>", "page", self._show)
        server, self.close = self._start(port)
        self.port = int(server.server_port)

    def url(self, name: str, goal: int, page: Page) -> str:
        """Return the full address of a page."""
        return f"http://{HOST}:{self.port}{write_address(name, goal, page)}"

    def serve_on(self, listener: socket) -> Callable[[], None]:
        """Serve on a socket of another network, too; return the function that stops it."""
        return self._start(self.port, listener)[1]

    def _start(self, port: int, listener: socket | None = None) -> tuple[BaseWSGIServer, Callable[[], None]]:
        descriptor = None if listener is None else listener.fileno()
        options = {"threaded": True, "request_handler": _QuietHandler, "fd": descriptor}
        server = make_server(HOST, port, self._app, **options)  # type: ignore[arg-type]
        server.daemon_threads = True  # type: ignore[attr-defined]
        thread = Thread(target=server.serve_forever, args=(0.1,), name="webshop-server", daemon=True)
        thread.start()

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join(timeout=5)

        return server, stop

    def _show(self, shop: str, goal: int, kind: str) -> Response:
        place = self.shops.get(shop)
        if place is None or not 0 <= goal < place.catalogue.goals:
            abort(404)
        try:
            text = render_page(place, shop, goal, read_page(kind, request.args))
        except (ValueError, TypeError, KeyError):
            abort(404)
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
        return Response(text, content_type="text/html; charset=utf-8", headers=headers)


def write_address(shop: str, goal: int, page: Page) -> str:
    """Return the path and query string of a page, beginning with `/`."""
    fields = {
        "q": page.query, "p": page.number if page.number > 1 else "", "asin": page.asin,
        "detail": page.detail, "o": json.dumps(page.options) if page.options else "",
    }  # fmt: skip
    query = urlencode({name: value for name, value in fields.items() if value})
    return f"/{quote(shop)}/{goal}/{page.kind}{'?' if query else ''}{query}"


def read_page(kind: str, parameters: Mapping[str, str]) -> Page:
    """Return the page of an address; a `ValueError` or `TypeError` if a parameter is malformed."""
    query = " ".join(parameters.get("q", "").lower().split())
    number = max(1, int(parameters.get("p", "1")))
    chosen = json.loads(parameters.get("o", "[]"))
    options = tuple((str(name), str(value)) for name, value in chosen)
    return Page(kind, query, number, parameters.get("asin", ""), options, parameters.get("detail", ""))


def render_page(shop: Shop, name: str, number: int, page: Page) -> str:
    """Return the HTML of a page; a `KeyError` if it names a product that is not in the catalogue."""
    goal = shop.catalogue.goal(number)

    def address(click: str) -> str:
        return write_address(name, number, shop.rules.after_click(page, click))

    # Every page has the buttons that the rules allow; the rest depends on its kind.
    clickables = shop.rules.clickables(page)
    buttons = [(click, label, address(click)) for click, label in _LABELS.items() if click in clickables]
    context: dict[str, Any] = {"goal": goal, "page": page, "buttons": buttons}
    if page.kind == SEARCH:
        context["tiles"] = [
            (label, draw_picture(picture, label, {"color": colour})) for label, picture, colour in _TILES
        ]
    elif page.kind == RESULTS:
        products = map(shop.catalogue.product, shop.rules.results(page))
        context["items"] = [(each, address(each.asin.lower()), _draw(each)) for each in products]
        context["total"] = len(shop.search(page.query))
    else:
        context |= _open_product(shop, page, goal, address)
    return render_template(f"{page.kind}.html", **context)


def _open_product(shop: Shop, page: Page, goal: Goal, address: Callable[[str], str]) -> dict[str, Any]:
    product = shop.catalogue.product(page.asin)
    context: dict[str, Any] = {"product": product, "picture": _draw(product, dict(page.options))}
    if page.kind == DONE:
        context["score"] = shop.judge(page, goal).reward
    if page.kind == ITEM:
        context["options"] = [
            (name, [(value, (name, value) in page.options, address(value)) for value in values])
            for name, values in product.options.items()
        ]
        context |= {"details": [(click, address(click)) for click in DETAILS], "buy": address(BUY)}
    return context


def _draw(product: Product, chosen: Mapping[str, str] | None = None) -> str:
    """Draw a product with the chosen options; others are its asin's, so that results are colourful."""
    turn = sum(product.asin.encode())
    shown = {name: values[turn % len(values)] for name, values in product.options.items() if values}
    return draw_picture(product.picture, product.asin, {**shown, **(chosen or {})})


class _QuietHandler(WSGIRequestHandler):
    """Keeps connections open, and writes no log: an environment prints nothing."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        logging.getLogger(__name__).debug(message, *args)

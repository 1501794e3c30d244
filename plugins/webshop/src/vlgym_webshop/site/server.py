"""The shop's web server: a Flask application behind Werkzeug, on a free port of the loopback interface, in a thread.

Stateless: what a page shows is a function of its address. `python -m vlgym_webshop` serves it for a person to look at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from socket import socket
from threading import Lock, Thread
from typing import Any

from flask import Flask, Response, abort, render_template, request
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from ..catalogue.records import Goal, Product
from ..session import BACK, BUY, DETAIL, DETAILS, DONE, ITEM, NEXT, PREVIOUS, RESULTS, SEARCH, Page
from ..shop import Shop
from .addresses import read_page, write_address
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
    """Serves any number of shops; each has a name, which is the first part of its addresses.

    Attributes:
        port: the TCP port.
    """

    def __init__(self, port: int = 0) -> None:
        self._shops: dict[str, Shop] = {}
        self._lock = Lock()
        self._app = self._make_app()
        server, self._stop = self._start(port)
        self.port = int(server.server_port)

    def add(self, name: str, shop: Shop) -> None:
        """Serve a shop under a name."""
        with self._lock:
            self._shops[name] = shop

    def url(self, name: str, goal: int, page: Page) -> str:
        """Return the full address of a page."""
        return f"http://{HOST}:{self.port}{write_address(name, goal, page)}"

    def serve_on(self, listener: socket) -> Callable[[], None]:
        """Serve on a listening socket too, which may belong to another network; return what stops that."""
        return self._start(self.port, listener)[1]

    def close(self) -> None:
        """Stop serving."""
        self._stop()

    def _start(self, port: int, listener: socket | None = None) -> tuple[BaseWSGIServer, Callable[[], None]]:
        descriptor = None if listener is None else listener.fileno()
        server = make_server(HOST, port, self._app, threaded=True, request_handler=_QuietHandler, fd=descriptor)
        server.daemon_threads = True  # type: ignore[attr-defined]
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="webshop-server", daemon=True)
        thread.start()

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join(timeout=5)

        return server, stop

    def _make_app(self) -> Flask:
        app = Flask(__package__)
        app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
        kinds = ", ".join((SEARCH, RESULTS, ITEM, DETAIL, DONE))
        app.add_url_rule(f"/<shop>/<int:goal>/<any({kinds}):kind>", "page", self._show)
        return app

    def _show(self, shop: str, goal: int, kind: str) -> Response:
        place = self._shops.get(shop)
        if place is None or not 0 <= goal < place.catalogue.goals:
            abort(404)
        try:
            page = read_page(kind, request.args)
            text = render_page(place, shop, goal, page)
        except (ValueError, TypeError, KeyError):
            abort(404)
        return Response(
            text,
            content_type="text/html; charset=utf-8",
            headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-store"},
        )


def render_page(shop: Shop, name: str, number: int, page: Page) -> str:
    """Return the HTML of a page.

    Raises:
        KeyError: the page names a product that is not in the catalogue.
    """
    goal = shop.catalogue.goal(number)

    def address(click: str) -> str:
        return write_address(name, number, shop.rules.after_click(page, click))

    clickables = shop.rules.clickables(page)
    context: dict[str, Any] = {
        "goal": goal,
        "page": page,
        "buttons": [(click, _LABELS[click], address(click)) for click in (BACK, PREVIOUS, NEXT) if click in clickables],
    }
    if page.kind == SEARCH:
        context["tiles"] = [
            (label, draw_picture(picture, label, {"color": colour})) for label, picture, colour in _TILES
        ]
    elif page.kind == RESULTS:
        context |= _results(shop, page, address)
    else:
        context |= _product(shop, page, goal, address)
    return render_template(f"{page.kind}.html", **context)


def _results(shop: Shop, page: Page, address: Any) -> dict[str, Any]:
    items = []
    for asin in shop.rules.results(page):
        product = shop.catalogue.product(asin)
        stars = "★ " + product.rating.split()[0] if product.rating[:1].isdigit() else ""
        items.append(
            {
                "asin": asin,
                "title": product.title,
                "price": product.price_tag,
                "stars": stars,
                "address": address(asin.lower()),
                "picture": _picture(product),
            }
        )
    return {"items": items, "total": len(shop.search(page.query))}


def _product(shop: Shop, page: Page, goal: Goal, address: Any) -> dict[str, Any]:
    product = shop.catalogue.product(page.asin)
    context: dict[str, Any] = {"product": product, "picture": _picture(product, dict(page.options))}
    if page.kind == DONE:
        context["score"] = shop.judge(page, goal).reward
    if page.kind == ITEM:
        chosen = set(page.options)
        context["options"] = [
            (name, [(value, (name, value) in chosen, address(value)) for value in values])
            for name, values in product.options.items()
        ]
        context["details"] = [(click, address(click)) for click in shop.rules.clickables(page) if click in DETAILS]
        context["buy"] = address(BUY)
    return context


def _picture(product: Product, chosen: dict[str, str] | None = None) -> str:
    """Draw a product with the chosen options; the rest are its own choice, so that a page of results is colourful."""
    turn = sum(product.asin.encode())
    shown = {name: values[turn % len(values)] for name, values in product.options.items() if values}
    return draw_picture(product.picture, product.asin, {**shown, **(chosen or {})})


class _QuietHandler(WSGIRequestHandler):
    """Keeps connections open, and writes no log: an environment prints nothing."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        logging.getLogger(__name__).debug(message, *args)

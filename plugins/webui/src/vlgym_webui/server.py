"""The only network that a browser of the pool has: a proxy on this machine that serves one page from memory and
refuses all else.

The browser is told to send everything, loopback included, through this proxy. A page lives at
`http://page.invalid/`; any other address is answered 403 without a connection being opened.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from urllib.parse import unquote, urlsplit

ORIGIN = "http://page.invalid"
"""Address of the page for the browser; `.invalid` is reserved and never resolves."""

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "ico": "image/x-icon",
    "json": "application/json",
    "woff2": "font/woff2",
}
_LOCAL = "'self' data: blob:"
_POLICY = (
    f"default-src 'none'; style-src {_LOCAL} 'unsafe-inline'; script-src {_LOCAL} 'unsafe-inline' 'unsafe-eval'; "
    f"img-src {_LOCAL}; font-src {_LOCAL}; media-src {_LOCAL}; connect-src blob:; form-action 'self'; "
    "frame-src 'none'; worker-src 'none'; object-src 'none'; base-uri 'none'; manifest-src 'none'; "
    "sandbox allow-scripts allow-same-origin allow-forms"
)


class PageServer:
    """Serves the files of one page at a time.

    Args:
        listener: the listening socket, which may belong to another network.

    Attributes:
        icon_answered: set once the browser has asked for the page's icon and been answered.
    """

    def __init__(self, listener: socket) -> None:
        self._files: dict[str, bytes] = {}
        self.icon_answered = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler(), bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = listener
        self._server.daemon_threads = True
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()

    def show(self, files: Mapping[str, bytes]) -> None:
        """Make `files` (path below the root -> contents) the page."""
        self._files = dict(files)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, address: str) -> tuple[int, str, bytes]:
        """Return status, content type and body for an absolute address."""
        parts = urlsplit(address)
        if f"{parts.scheme}://{parts.netloc}" != ORIGIN:
            return 403, "text/plain", b""
        path = unquote(parts.path).strip("/") or "index.html"
        body = self._files.get(path)
        if body is None:
            return 404, "text/plain", b""
        return 200, _TYPES.get(path.rsplit(".", 1)[-1].lower(), "application/octet-stream"), body

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):  # the browser was killed while it was answered
                    super().handle()

            def do_GET(self) -> None:
                try:
                    status, kind, body = server.answer(self.path)
                except ValueError:
                    status, kind, body = 400, "text/plain", b""
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("Content-Security-Policy", _POLICY)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
                if urlsplit(self.path).path == "/favicon.ico":
                    server.icon_answered.set()

            do_HEAD = do_GET

            def do_POST(self) -> None:
                # A form of the page may be sent to the page itself; its body is of no use here.
                self.close_connection = True
                self.do_GET()

            def refuse(self) -> None:
                self.close_connection = True
                self.send_response(403)
                self.send_header("Content-Length", "0")
                self.send_header("Connection", "close")
                self.end_headers()

            do_CONNECT = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = refuse

            def log_message(self, *args: object) -> None:
                """Say nothing: the certificate forbids output."""

        return Handler

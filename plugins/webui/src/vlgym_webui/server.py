"""The only network of a browser: a proxy on this machine that serves one page from memory.

The browser sends everything, loopback included, through this proxy. A page lives at
`http://page.invalid/`; any other address is answered 403 without a connection being opened.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from urllib.parse import unquote, urlsplit

ORIGIN = "http://page.invalid"  # `.invalid` is reserved and never resolves

_TYPES = {
    "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
    "webp": "image/webp", "ico": "image/x-icon", "json": "application/json", "woff2": "font/woff2",
}  # fmt: skip
_LOCAL = "'self' data: blob:"
_POLICY = (
    f"default-src 'none'; style-src {_LOCAL} 'unsafe-inline'; script-src {_LOCAL} 'unsafe-inline' 'unsafe-eval'; "
    f"img-src {_LOCAL}; font-src {_LOCAL}; media-src {_LOCAL}; connect-src blob:; form-action 'self'; "
    "frame-src 'none'; worker-src 'none'; object-src 'none'; base-uri 'none'; manifest-src 'none'; "
    "sandbox allow-scripts allow-same-origin allow-forms"
)


class PageServer(ThreadingHTTPServer):
    """Serves the files of one page at a time.

    Args:
        listener: the listening socket, which may belong to another network.

    Attributes:
        icon_answered: set once the browser's question for the page's icon has been answered.
    """

    daemon_threads = True

    def __init__(self, listener: socket) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._files: dict[str, bytes] = {}
        self.icon_answered = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def show(self, files: Mapping[str, bytes]) -> None:
        """Make `files` (path below the root -> contents) the page."""
        self._files = dict(files)

    def close(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()

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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: PageServer

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the browser was killed while it was answered
            super().handle()

    def do_GET(self) -> None:
        try:
            status, kind, body = self.server.answer(self.path)
        except ValueError:
            status, kind, body = 400, "text/plain", b""

        # No page may be kept, nor reach for anything else.
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", _POLICY)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        if urlsplit(self.path).path == "/favicon.ico":
            self.server.icon_answered.set()

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

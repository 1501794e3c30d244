"""WebUI: hostile pages, one after another, and what came of each.

    python tests/benchmarks/hostile_pages.py --write

The pages are those of `plugins/webui/tests/hostile.py`. A server on this machine counts who connects; the text of
/etc/hostname is looked for in what was read; after each page a harmless one has to be read by the same pool. What is
refused is counted by kind; a page fails where it takes more time, memory or elements than it may, or leaves.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path

from report import finish, parse_write, table

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins" / "webui" / "tests"))
from hostile import ALL

FINE = {"index.html": b"<!DOCTYPE html><html><body><h1>fine</h1></body></html>"}


def listen() -> tuple[int, list[str]]:
    """Start a server on loopback; return its port and the list that grows with each connection."""
    server = socket.create_server(("127.0.0.1", 0))
    knocks: list[str] = []

    def wait() -> None:
        while True:
            connection, address = server.accept()
            knocks.append(address[0])
            connection.close()

    threading.Thread(target=wait, daemon=True).start()
    return server.getsockname()[1], knocks


def main() -> None:
    """Render all pages and write what came of them."""
    options = parse_write(__doc__ or "")
    from vlgym_webui.browser import Browser, Render

    from vlgym.chromium import BrowserPool

    def read(render: Render) -> str:
        return " ".join(element.styles["text"] for each in render.tables if each for element in each)

    port, knocks = listen()
    socket.create_connection(("127.0.0.1", port)).close()  # the server counts
    while not knocks:
        time.sleep(0.01)
    knocks.clear()
    secret = Path("/etc/hostname").read_text(encoding="utf-8").strip()
    pool = BrowserPool(Browser)
    rows, read_files, ill, slowest = [], 0, 0, 0.0
    for kind, pages in ALL.items():
        for name, script in pages.items():
            script = script.replace("PORT", str(port))
            page = f"<!DOCTYPE html><html><body><h1>here</h1><script>{script}</script></body></html>"
            begun = time.monotonic()
            with pool.borrow() as browser:
                render = browser.render({"index.html": page.encode()})
            took = time.monotonic() - begun
            slowest = max(slowest, took)
            read_files += bool(secret) and secret in read(render)
            with pool.borrow() as browser:
                ill += read(browser.render(FINE)) != "fine"
            refused = ", ".join(f"{what} {count}" for what, count in sorted(render.blocked.items())) or "-"
            rows.append([kind, name, "lost" if render.lost else render.failure or "read", refused, f"{took:.1f}"])
            print(*rows[-1], sep="  ", flush=True)
    pool.close()
    body = (
        f"{len(rows)} pages. Connections to the server: {len(knocks)}. Pages in which the file's text was read: "
        f"{read_files}. Harmless pages afterwards that were not read as they are: {ill}. The slowest page took "
        f"{slowest:.1f} s, with what else ran on the machine.\n\n"
    )
    body += table(["after", "page", "outcome", "refused and counted", "seconds"], rows)
    finish("hostile_pages", "WebUI: hostile pages", body, ["vlgym", "vlgym-webui", "selenium"], options.write)
    if knocks or read_files or ill:
        raise SystemExit("a page got through, or hurt the next one")


if __name__ == "__main__":
    main()

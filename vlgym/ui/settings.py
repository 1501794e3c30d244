"""What the pages may show, and where they are served."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

PORT = 8421
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Settings:
    """Of one server.

    Attributes:
        paths: files below these folders may be shown, as far as the index lists them; nothing else is.
        host: address that the server listens on.
        port: its port.
        token: what a visitor has to know; `None` lets everyone in who reaches the address.
        out: where games that a person plays are recorded.
    """

    paths: tuple[Path, ...] = ()
    host: str = LOOPBACK
    port: int = PORT
    token: str | None = None
    out: Path = Path("runs/human")

    @property
    def local(self) -> bool:
        """Whether only this machine reaches the server."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host, as it stands in an address without its port, is this machine's own.

    Only literal addresses and `localhost` count: any other name may be made to point anywhere.
    """
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False

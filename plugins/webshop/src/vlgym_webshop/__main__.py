"""`python -m vlgym_webshop`: open the shop for a person with a browser on this machine."""

import argparse
import sys
import time

from vlgym.errors import UserError

from .catalogue.build import CatalogueSource
from .services import Shop, ShopConfig
from .session import Page
from .site.server import ShopServer


def main(arguments: list[str] | None = None) -> int:
    """Serve one catalogue until interrupted."""
    about = "Serve the shop on the loopback interface."
    parser = argparse.ArgumentParser(prog="python -m vlgym_webshop", description=about)
    parser.add_argument("--port", type=int, default=3000, help="TCP port (default 3000; 0 takes a free one)")
    parser.add_argument("--goal", type=int, default=0, help="number of the goal whose instruction is shown")
    parser.add_argument("--data", help="folder of WebShop's own files, instead of the generated catalogue")
    chosen = parser.parse_args(arguments)

    # Wrong values, a missing part or a port that is taken is the user's to correct.
    try:
        shop = Shop(ShopConfig(CatalogueSource(data=chosen.data)))
        if not 0 <= chosen.goal < shop.catalogue.goals:
            raise UserError(f"--goal {chosen.goal} must be from 0 to {shop.catalogue.goals - 1}.")
        server = ShopServer(chosen.port)
    except (UserError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except SystemExit:  # what Werkzeug does when the port is taken
        print(f"Port {chosen.port} is taken; choose another one with --port.", file=sys.stderr)
        return 1

    # The server runs in a thread until Ctrl-C.
    server.shops["shop"] = shop
    address = server.url("shop", chosen.goal, Page())
    print(f"The shop is open at {address} (stop with Ctrl-C)", flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        server.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())

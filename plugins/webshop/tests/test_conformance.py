"""The whole contract of vlgym."""

from __future__ import annotations

from vlgym.testing import EnvConformance


class TestWebShop(EnvConformance):
    """Every property of the kit, for both versions."""

    env_ids = ("vlgym/WebShop-v0", "vlgym/WebShop-v1")

"""The whole contract of vlgym."""

from __future__ import annotations

from vlgym.testing import EnvConformance


class TestWebShop(EnvConformance):
    env_id = "vlgym/WebShop-v0"

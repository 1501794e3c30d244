"""The whole contract of vlgym, and what may differ in the earlier version."""

from __future__ import annotations

from vlgym.testing import EnvConformance


class TestWebShop(EnvConformance):
    """Every property of the kit."""

    env_id = "vlgym/WebShop-v1"


class TestEarlierWebShop(EnvConformance):
    env_id = "vlgym/WebShop-v0"
    checks = ("card", "prompt", "splits", "recorded")  # slow; `recorded` replays random and oracle episodes

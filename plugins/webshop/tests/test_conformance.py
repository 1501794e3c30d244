"""The whole contract of vlgym, and the recorded behaviour of the earlier version."""

from __future__ import annotations

from vlgym.testing import CHECKS, EnvConformance


class TestWebShop(EnvConformance):
    env_id = "vlgym/WebShop-v1"
    checks = tuple(name for name in CHECKS if name != "levels")  # they take long: the sweep plays them
    garbage = 30


class TestEarlierWebShop(EnvConformance):
    env_id = "vlgym/WebShop-v0"
    checks = ("recorded",)

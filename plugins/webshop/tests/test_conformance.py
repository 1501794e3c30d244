"""The whole contract of vlgym, and the recorded behaviour of the earlier version."""

from __future__ import annotations

from vlgym.testing import EnvConformance


class TestWebShop(EnvConformance):
    env_id = "vlgym/WebShop-v1"
    garbage = 30


class TestEarlierWebShop(EnvConformance):
    env_id = "vlgym/WebShop-v0"
    checks = ("recorded",)

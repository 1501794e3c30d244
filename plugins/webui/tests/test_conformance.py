"""The whole contract of vlgym; the sweep has the recorded behaviour of the earlier version."""

from __future__ import annotations

from vlgym.testing import EnvConformance


class TestWebUI(EnvConformance):
    env_id = "vlgym/WebUI-v1"
    garbage = 30

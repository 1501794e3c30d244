"""The core's certificate."""

from __future__ import annotations

from vlgym.testing import EnvConformance


class TestWebUI(EnvConformance):
    env_ids = ("vlgym/WebUI-v0", "vlgym/WebUI-v1")

"""The core's certificate."""

from __future__ import annotations

from vlgym.testing import EnvConformance


class TestWebUI(EnvConformance):
    env_id = "vlgym/WebUI-v0"

"""The core's certificate, and what may differ in the earlier version."""

from __future__ import annotations

from vlgym.testing import EnvConformance


class TestWebUI(EnvConformance):
    env_id = "vlgym/WebUI-v1"


class TestEarlierWebUI(EnvConformance):
    env_id = "vlgym/WebUI-v0"
    checks = ("card", "prompt", "splits", "recorded")  # slow; `recorded` replays random and oracle episodes

"""The certificates of a probe and of a canary, and the recorded behaviour of a probe of several turns."""

from vlgym.testing import EnvConformance


class TestSight(EnvConformance):
    env_ids = ("vlgym/SeeCount-v0", "vlgym/CanaryMemory-v0")


class TestHistory(EnvConformance):
    env_id = "vlgym/SeeHistory-v0"
    checks = ("recorded",)

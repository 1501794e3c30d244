"""The certificates of a probe and a canary, and the recorded behaviour of SeeHistory."""

from vlgym.testing import CHECKS, EnvConformance

SWEPT = {
    "processes", "floor", "resources", "blind", "history", "values", "vector", "parser_time",
    "described", "oracle", "silence", "rewards",
}  # fmt: skip


class TestSight(EnvConformance):
    env_ids = ("vlgym/SeeCount-v0", "vlgym/CanaryMemory-v0")
    checks = tuple(name for name in CHECKS if name not in SWEPT)
    garbage = 30


class TestHistory(EnvConformance):
    env_id = "vlgym/SeeHistory-v0"
    checks = ("recorded",)

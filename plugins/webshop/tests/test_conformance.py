"""The contract of vlgym; checks that take long, and the earlier version, are the sweep's."""

from vlgym.testing import CHECKS, EnvConformance

SWEPT = {
    "levels", "floor", "oracle", "blind", "vector", "history", "parser_time", "resources", "side_effects",
    "processes", "silence", "words", "described", "rewards", "values", "endings", "picture",
}  # fmt: skip


class TestWebShop(EnvConformance):
    env_id = "vlgym/WebShop-v1"
    checks = tuple(name for name in CHECKS if name not in SWEPT)
    garbage = 30

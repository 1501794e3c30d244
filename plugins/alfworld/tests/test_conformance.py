"""The certificate of the newest version; long checks and the earlier version are the sweep's."""

from vlgym.testing import CHECKS, EnvConformance

SWEPT = {
    "levels", "blind", "floor", "history", "resources", "values", "vector", "parser_time",
    "processes", "silence", "oracle", "described", "words", "rewards", "endings", "picture",
}  # fmt: skip


class TestHouseholds(EnvConformance):
    env_id = "vlgym/ALFWorld-v1"
    checks = tuple(name for name in CHECKS if name not in SWEPT)
    garbage = 30

"""The contract of vlgym; checks that take long, and the earlier version, are the sweep's."""

from vlgym.testing import CHECKS, EnvConformance

SWEPT = (
    "levels", "floor", "oracle", "blind", "vector", "history", "parser_time", "words", "described", "resources",
    "processes", "rewards", "silence", "parsers", "endings", "values", "conduct", "picture",
)  # fmt: skip


class TestWebUI(EnvConformance):
    env_id = "vlgym/WebUI-v1"
    checks = tuple(name for name in CHECKS if name not in SWEPT)
    garbage = 30

"""The certificate for one environment; long checks, and the game, are the sweep's."""

from vlgym.testing import CHECKS, EnvConformance

SWEPT = (
    "levels", "oracle", "blind", "values", "conduct", "history", "vector", "floor", "parser_time", "resources",
    "processes", "rewards", "silence", "endings", "determinism", "picture", "described",
)  # fmt: skip


class TestFootball(EnvConformance):
    """The kit, on the 108 situations."""

    env_id = "vlgym/Football-v1"
    checks = tuple(name for name in CHECKS if name not in SWEPT)
    garbage = 60

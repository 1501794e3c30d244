"""The certificate for one environment; checks that take long, and the game of several agents, are the sweep's."""

from vlgym.testing import CHECKS, EnvConformance

SWEPT = ("levels", "oracle", "blind", "values", "conduct", "history", "vector", "floor", "parser_time", "resources")


class TestFootball(EnvConformance):
    """The kit, on the 108 situations."""

    env_id = "vlgym/Football-v1"
    checks = tuple(name for name in CHECKS if name not in SWEPT)
    garbage = 60

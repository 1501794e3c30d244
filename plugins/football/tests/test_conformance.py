"""The certificate of the environment for one, and the recorded behaviour of the game of several agents."""

from vlgym.testing import CHECKS, EnvConformance


class TestFootball(EnvConformance):
    """Every property of the kit, on the 108 situations."""

    env_id = "vlgym/Football-v1"
    checks = tuple(name for name in CHECKS if name != "levels")  # they take long: the sweep plays them
    garbage = 60


class TestFootballTeam(EnvConformance):
    env_id = "vlgym/FootballTeam-v0"
    checks = ("recorded",)

"""The certificate of both environments, in their main settings, and the recorded behaviour of the earlier version."""

from vlgym.testing import EnvConformance, GameConformance


class TestFootball(EnvConformance):
    """Every property of the kit, on the 108 situations."""

    env_id = "vlgym/Football-v1"
    garbage = 60


class TestEarlierFootball(EnvConformance):
    env_id = "vlgym/Football-v0"
    checks = ("recorded",)


class TestFootballTeam(GameConformance):
    """The game of several agents."""

    env_id = "vlgym/FootballTeam-v0"
    garbage = 60

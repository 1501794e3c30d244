"""The certificate of the environment for one, and the properties of the game of several agents."""

from vlgym.testing import GAME_CHECKS, EnvConformance, GameConformance


class TestFootball(EnvConformance):
    """Every property of the kit, on the 108 situations."""

    env_id = "vlgym/Football-v1"
    garbage = 60


class TestFootballTeam(GameConformance):
    env_id = "vlgym/FootballTeam-v0"
    checks = ("recorded", *GAME_CHECKS)

"""The certificate of the environment, in its main settings, and what may differ in the earlier version."""

from vlgym.testing import EnvConformance, GameConformance


class TestFootball(EnvConformance):
    """Every property of the kit, on the 108 situations."""

    env_id = "vlgym/Football-v1"


class TestEarlierFootball(EnvConformance):
    env_id = "vlgym/Football-v0"
    checks = ("card", "prompt", "splits", "recorded")  # slow; `recorded` replays random and oracle episodes


class TestFootballTeam(GameConformance):
    """The game of several agents."""

    env_id = "vlgym/FootballTeam-v0"

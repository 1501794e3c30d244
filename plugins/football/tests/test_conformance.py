"""The certificate of the environment, in its main settings."""

from vlgym.testing import EnvConformance


class TestFootball(EnvConformance):
    """Every property of the kit, on the 108 situations."""

    env_ids = ("vlgym/Football-v0", "vlgym/Football-v1")

"""The certificate of every environment of the family, and what may differ in the earlier versions."""

from vlgym.testing import VARIANT_CHECKS, EnvConformance


class TestCards(EnvConformance):
    """Every property of the kit, for each id."""

    env_ids = ("vlgym/NumberLine-v1", "vlgym/EZPoints-v1", "vlgym/Points24-v1", "vlgym/Blackjack-v0")


class TestEarlierCards(EnvConformance):
    env_ids = ("vlgym/NumberLine-v0", "vlgym/EZPoints-v0", "vlgym/Points24-v0")
    checks = VARIANT_CHECKS

"""The certificate of every environment of the family, and the recorded behaviour of the earlier versions."""

from vlgym.testing import EnvConformance


class TestCards(EnvConformance):
    env_ids = ("vlgym/NumberLine-v1", "vlgym/EZPoints-v1", "vlgym/Points24-v1", "vlgym/Blackjack-v0")


class TestEarlierCards(EnvConformance):
    env_ids = ("vlgym/NumberLine-v0", "vlgym/EZPoints-v0", "vlgym/Points24-v0")
    checks = ("recorded",)

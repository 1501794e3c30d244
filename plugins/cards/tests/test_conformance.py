"""The certificate of one environment, and the recorded behaviour of others."""

from vlgym.testing import EnvConformance


class TestCards(EnvConformance):
    env_id = "vlgym/NumberLine-v1"


class TestOtherCards(EnvConformance):
    env_ids = ("vlgym/EZPoints-v1", "vlgym/Points24-v1", "vlgym/Blackjack-v0", "vlgym/NumberLine-v0")
    checks = ("recorded",)

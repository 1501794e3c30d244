"""The certificate of the newest version, and the recorded behaviour of the earlier one."""

from vlgym.testing import EnvConformance


class TestHouseholds(EnvConformance):
    env_id = "vlgym/ALFWorld-v1"
    garbage = 30


class TestEarlierVersion(EnvConformance):
    env_id = "vlgym/ALFWorldPick-v0"
    checks = ("recorded",)

"""The certificate of the newest version, and the recorded behaviour of the earlier one."""

from vlgym.testing import CHECKS, EnvConformance


class TestHouseholds(EnvConformance):
    env_id = "vlgym/ALFWorld-v1"
    checks = tuple(name for name in CHECKS if name != "levels")  # they take long: the sweep plays them
    garbage = 30


class TestEarlierVersion(EnvConformance):
    env_id = "vlgym/ALFWorldPick-v0"
    checks = ("recorded",)

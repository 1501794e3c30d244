"""The certificate of one environment, and of the others the recorded behaviour and own states.

The sweep has the other checks; `test_tasks.py` plays all levels.
"""

from vlgym.testing import CHECKS, EnvConformance

SWEPT = ("levels", "floor", "blind", "history", "parser_time", "resources", "values")


class TestClick(EnvConformance):
    env_id = "vlgym/ScreensClick-v0"
    checks = tuple(name for name in CHECKS if name not in SWEPT)
    garbage = 100


class TestOtherScreens(EnvConformance):
    env_ids = ("vlgym/ScreensGo-v0", "vlgym/ScreensSet-v0", "vlgym/ScreensFind-v0", "vlgym/ScreensLook-v0")
    checks = ("recorded", "parsers", "state")

"""The certificate of one environment, and of the others the recorded behaviour and what they do not share with it."""

from vlgym.testing import EnvConformance


class TestClick(EnvConformance):
    env_id = "vlgym/ScreensClick-v0"


class TestOtherScreens(EnvConformance):
    env_ids = ("vlgym/ScreensGo-v0", "vlgym/ScreensSet-v0", "vlgym/ScreensFind-v0", "vlgym/ScreensLook-v0")
    checks = ("recorded", "parsers", "state", "described", "oracle", "levels")

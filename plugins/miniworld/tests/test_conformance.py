"""The certificate of one environment in small pictures, without the checks that are the sweep's."""

from typing import ClassVar

from vlgym.testing import CHECKS, EnvConformance

SWEPT = ("levels", "floor", "blind", "history", "parser_time", "resources")


class TestMiniWorld(EnvConformance):
    env_id = "vlgym/OneRoomS6Fast-v1"
    env_kwargs: ClassVar[dict[str, object]] = {"image_size": (32, 32)}
    checks = tuple(name for name in CHECKS if name not in SWEPT)
    garbage = 100


class TestFullSize(EnvConformance):
    env_ids = ("vlgym/OneRoomS6Fast-v1", "vlgym/Sign-v0")
    checks = ("recorded",)

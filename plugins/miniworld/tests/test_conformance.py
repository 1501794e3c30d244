"""The certificate of one environment in small pictures; in full size, the recorded behaviour of one environment of each
kind of task, and of an earlier version."""

from typing import ClassVar

from vlgym.testing import EnvConformance


class TestMiniWorld(EnvConformance):
    env_id = "vlgym/Sign-v0"
    env_kwargs: ClassVar[dict[str, object]] = {"image_size": (32, 32)}
    garbage = 100


class TestOtherMiniWorld(EnvConformance):
    env_ids = ("vlgym/OneRoomS6Fast-v1", "vlgym/Sign-v0", "vlgym/OneRoomS6Fast-v0")
    checks = ("recorded",)

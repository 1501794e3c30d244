"""The certificate of three environments in small pictures, one of each kind of task, and for every id what may differ,
in full size."""

from typing import ClassVar

from vlgym_miniworld.plugin import vlgym_envs

from vlgym.testing import VARIANT_CHECKS, EnvConformance

SPECS = vlgym_envs()


class TestMiniWorld(EnvConformance):
    """Going to a box, gathering things, reading a sign."""

    env_ids = ("vlgym/OneRoom-v1", "vlgym/CollectHealth-v0", "vlgym/Sign-v0")
    env_kwargs: ClassVar[dict[str, object]] = {"image_size": (32, 32)}
    garbage = 100


class TestOtherMiniWorld(EnvConformance):
    env_ids = tuple(spec.id for spec in SPECS if not spec.replaced_by)
    checks = VARIANT_CHECKS


class TestEarlierMiniWorld(EnvConformance):
    env_ids = tuple(spec.id for spec in SPECS if spec.replaced_by)
    checks = ("recorded",)

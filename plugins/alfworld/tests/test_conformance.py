"""The whole contract for the newest version, what may differ for its six task types, and the recorded behaviour of the
earlier versions."""

from typing import ClassVar

from vlgym_alfworld.plugin import vlgym_envs

from vlgym.testing import VARIANT_CHECKS, EnvConformance

ALL_TYPES = "vlgym/ALFWorld-v1"
SPECS = vlgym_envs()


class TestHouseholds(EnvConformance):
    env_id = ALL_TYPES
    garbage: ClassVar[int] = 30


class TestTaskTypes(EnvConformance):
    env_ids = tuple(spec.id for spec in SPECS if spec.id != ALL_TYPES and not spec.replaced_by)
    checks = VARIANT_CHECKS


class TestEarlierVersions(EnvConformance):
    env_ids = tuple(spec.id for spec in SPECS if spec.replaced_by)
    checks = ("recorded",)

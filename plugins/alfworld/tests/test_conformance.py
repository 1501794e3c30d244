"""The whole contract for the newest version, and what may differ for its six task types and the earlier versions."""

from typing import ClassVar

from vlgym_alfworld.plugin import vlgym_envs

from vlgym.testing import VARIANT_CHECKS, EnvConformance

ALL_TYPES = "vlgym/ALFWorld-v1"


class TestHouseholds(EnvConformance):
    env_id = ALL_TYPES
    garbage: ClassVar[int] = 60


class TestTaskTypesAndEarlierVersions(EnvConformance):
    env_ids: ClassVar[tuple[str, ...]] = tuple(spec.id for spec in vlgym_envs() if spec.id != ALL_TYPES)
    garbage: ClassVar[int] = 60
    checks = VARIANT_CHECKS

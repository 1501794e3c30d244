"""The whole contract for the newest version, what may differ for its six task types, and the recorded behaviour of the
earlier versions."""

from typing import ClassVar

from vlgym_alfworld.plugin import vlgym_envs

from vlgym.testing import VARIANT_CHECKS, EnvConformance

ALL_TYPES = "vlgym/ALFWorld-v1"


class TestHouseholds(EnvConformance):
    env_id = ALL_TYPES
    garbage: ClassVar[int] = 60


class TestTaskTypes(EnvConformance):
    env_ids = tuple(spec.id for spec in vlgym_envs() if spec.id != ALL_TYPES and not spec.replaced_by)
    garbage: ClassVar[int] = 60
    checks = VARIANT_CHECKS


class TestEarlierVersions(EnvConformance):
    env_ids = tuple(spec.id for spec in vlgym_envs() if spec.replaced_by)
    checks = ("card", "prompt", "splits", "recorded")  # slow; `recorded` replays random and oracle episodes

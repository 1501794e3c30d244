"""The certificate of one mission, and for the others what may differ."""

from vlgym_outside.plugin import BABYAI

from vlgym.testing import VARIANT_CHECKS, EnvConformance


class TestMission(EnvConformance):
    env_id = BABYAI[0].id


class TestOtherMissions(EnvConformance):
    env_ids = tuple(spec.id for spec in BABYAI[1:])
    checks = (*VARIANT_CHECKS, "oracle")

"""The certificate of one mission; the sweep has the others."""

from vlgym_outside.plugin import BABYAI

from vlgym.testing import EnvConformance


class TestMission(EnvConformance):
    env_id = BABYAI[0].id

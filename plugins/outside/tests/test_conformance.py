"""The certificate of one mission; the sweep has the others, and the longest checks."""

from vlgym_outside.plugin import BABYAI

from vlgym.testing import CHECKS, EnvConformance

SWEPT = ("floor", "blind", "history", "parser_time", "resources", "values", "processes")


class TestMission(EnvConformance):
    env_id = BABYAI[0].id
    checks = tuple(name for name in CHECKS if name not in SWEPT)
    garbage = 100

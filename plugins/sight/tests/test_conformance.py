"""The certificate of every environment of the family."""

from vlgym_sight.plugin import PROBES

from vlgym.testing import EnvConformance


class TestSight(EnvConformance):
    """Every property of the kit, for each id."""

    env_ids = tuple(spec.id for spec in PROBES)

"""The certificate of one probe, and for the others what may differ."""

from vlgym_sight.plugin import PROBES

from vlgym.testing import VARIANT_CHECKS, EnvConformance

WHOLE = "vlgym/SeeCount-v0"


class TestSight(EnvConformance):
    env_id = WHOLE


class TestOtherProbes(EnvConformance):
    env_ids = tuple(spec.id for spec in PROBES if spec.id != WHOLE)
    checks = VARIANT_CHECKS

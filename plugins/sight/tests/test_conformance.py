"""The certificate of one probe, and the recorded behaviour of a canary and of a probe of several turns."""

from vlgym.testing import EnvConformance


class TestSight(EnvConformance):
    env_id = "vlgym/SeeCount-v0"


class TestOtherProbes(EnvConformance):
    env_ids = ("vlgym/CanaryMemory-v0", "vlgym/SeeHistory-v0")
    checks = ("recorded",)

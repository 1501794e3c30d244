"""The certificate of every environment of the family, in small pictures (`vlgym check` takes full size), what may
differ in the earlier versions, and for all of them what registry.yaml records, in full size."""

from vlgym_miniworld.plugin import vlgym_envs

from vlgym.testing import VARIANT_CHECKS, EnvConformance

SPECS = vlgym_envs()
SMALL = {"image_size": (32, 32)}


class TestMiniWorldConformance(EnvConformance):
    """Every property of the kit, for each id."""

    env_ids = tuple(spec.id for spec in SPECS if not spec.replaced_by)
    env_kwargs = SMALL
    garbage = 200


class TestEarlierMiniWorld(EnvConformance):
    env_ids = tuple(spec.id for spec in SPECS if spec.replaced_by)
    env_kwargs = SMALL
    checks = VARIANT_CHECKS


class TestMiniWorldRecorded(EnvConformance):
    env_ids = tuple(spec.id for spec in SPECS)
    checks = ("recorded",)

"""The certificate of every environment of the family, in small pictures (`vlgym check` takes full size)."""

from vlgym_miniworld.plugin import SPECS

from vlgym.testing import EnvConformance


class TestMiniWorldConformance(EnvConformance):
    """Every property of the kit, for each id."""

    env_ids = tuple(spec.id for spec in SPECS)
    env_kwargs = {"image_size": (32, 32)}  # noqa: RUF012 - declared ClassVar in the base
    garbage = 200

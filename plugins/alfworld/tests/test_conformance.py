"""The whole contract, for each of the seven environments in both versions."""

from typing import ClassVar

from vlgym.testing import EnvConformance


class TestHouseholds(EnvConformance):
    env_ids: ClassVar[tuple[str, ...]] = (
        "vlgym/ALFWorld-v0",
        "vlgym/ALFWorldPick-v0",
        "vlgym/ALFWorldLook-v0",
        "vlgym/ALFWorldClean-v0",
        "vlgym/ALFWorldHeat-v0",
        "vlgym/ALFWorldCool-v0",
        "vlgym/ALFWorldPick2-v0",
        "vlgym/ALFWorld-v1",
        "vlgym/ALFWorldPick-v1",
        "vlgym/ALFWorldLook-v1",
        "vlgym/ALFWorldClean-v1",
        "vlgym/ALFWorldHeat-v1",
        "vlgym/ALFWorldCool-v1",
        "vlgym/ALFWorldPick2-v1",
    )
    garbage: ClassVar[int] = 60

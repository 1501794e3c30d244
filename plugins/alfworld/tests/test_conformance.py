"""The whole contract, for each of the seven environments."""

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
    )
    garbage: ClassVar[int] = 60

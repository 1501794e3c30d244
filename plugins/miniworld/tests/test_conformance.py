"""The certificate on one environment of each kind, in small pictures; the repository's sweep runs it on every
id at full size.
"""

from vlgym.testing import EnvConformance


class TestMiniWorldConformance(EnvConformance):
    """Reaching a box, reading a sign, carrying."""

    env_ids = (
        "vlgym/OneRoomS6Fast-v0",
        "vlgym/Sign-v0",
        "vlgym/PutNext-v0",
    )
    env_kwargs = {"image_size": (32, 32)}  # noqa: RUF012 - declared ClassVar in the base
    garbage = 200

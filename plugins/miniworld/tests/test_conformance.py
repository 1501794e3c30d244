"""The certificate of every environment of the family, in small pictures (`vlgym check` takes full size), what may
differ in the same rooms of another size, and for all, earlier versions too, what registry.yaml records, in full
size."""

from vlgym_miniworld.plugin import vlgym_envs

from vlgym.testing import VARIANT_CHECKS, EnvConformance

SPECS = vlgym_envs()
SMALL = {"image_size": (32, 32)}
SAME_RULES = (
    "MazeS2", "MazeS3", "MazeS3Fast", "OneRoomS6", "OneRoomS6Fast", "TMazeLeft", "TMazeRight", "YMazeLeft",
    "YMazeRight",
)  # fmt: skip
"""Maze, OneRoom, TMaze and YMaze in another size, with other strides, or with the box at one side."""
EARLIER = tuple(spec.id for spec in SPECS if spec.replaced_by)
OTHER = tuple(spec.id for spec in SPECS if spec.title in SAME_RULES and spec.id not in EARLIER)


class TestMiniWorldConformance(EnvConformance):
    """Every property of the kit, for each id."""

    env_ids = tuple(spec.id for spec in SPECS if spec.id not in (*OTHER, *EARLIER))
    env_kwargs = SMALL
    garbage = 200


class TestOtherMiniWorld(EnvConformance):
    env_ids = OTHER
    env_kwargs = SMALL
    checks = VARIANT_CHECKS


class TestEarlierMiniWorld(EnvConformance):
    env_ids = EARLIER
    checks = ("card", "prompt", "splits")  # and `recorded`, below, which replays random and oracle episodes


class TestMiniWorldRecorded(EnvConformance):
    env_ids = tuple(spec.id for spec in SPECS)
    checks = ("recorded",)

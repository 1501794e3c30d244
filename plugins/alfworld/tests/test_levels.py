"""Levels of ALFWorld: task types, receptacles in the room, objects, turns."""

from vlgym_alfworld.game import HEAT
from vlgym_alfworld.rooms import load_room

from vlgym import make
from vlgym.env.seeding import episode_seed


def test_a_level_bounds_task_types_receptacles_and_objects_in_every_split() -> None:
    env = make("vlgym/ALFWorld-v1")
    inner = env.unwrapped
    for level, arguments in enumerate(inner.level_arguments):
        for split in ("train", "test"):
            _, info = env.reset(seed=episode_seed("vlgym/ALFWorld-v1", split, level), options={"level": level})
            assert info["task_type"] in arguments["types"]
            low, high = arguments["places"]
            assert low <= len(load_room(info["scene"]).places) <= high
            assert inner.max_turns == arguments.get("max_turns", 50)
            low, high = arguments.get("things", (12, 22))
            assert len(inner._backend.world.holder) <= high + 1  # a lamp more
    usual, _ = env.reset(seed=5)
    again, _ = make("vlgym/ALFWorld-v1").reset(seed=5)
    assert (usual["image"] == again["image"]).all()


def test_an_environment_of_one_task_type_keeps_it_on_every_level() -> None:
    env = make("vlgym/ALFWorldHeat-v1")
    for level in range(5):
        assert env.reset(seed=level, options={"level": level})[1]["task_type"] == HEAT

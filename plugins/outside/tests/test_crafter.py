"""Crafter: the same episode in every process, each action's effect, and the score."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from crafter.objects import Cow, Plant, Skeleton, Zombie

import vlgym

ID = "vlgym/Crafter-v0"
PLAY = """
import hashlib, random, sys, vlgym
junk = [object() for _ in range(int(sys.argv[1]))]
env, rng, told = vlgym.make("vlgym/Crafter-v0"), random.Random(0), hashlib.sha256()
observation, info = env.reset(seed=0)
for _ in range(300):
    env.unwrapped.inner._player.inventory.update(health=9, food=9, drink=9)
    told.update(observation["image"].tobytes())
    action = rng.choice(["noop", "move left", "move right", "move up", "move down", "do"])
    observation, *_ = env.step(env.parser.format([action], ""))
print(told.hexdigest())
"""
BY_TABLE = {"wood pickaxe": {"wood": 1}, "wood sword": {"wood": 1}, "stone pickaxe": {"wood": 1, "stone": 1}}
BY_TABLE["stone sword"] = BY_TABLE["stone pickaxe"]
BY_BOTH = {name: {"wood": 1, "coal": 1, "iron": 1} for name in ("iron pickaxe", "iron sword")}
COLLECTED = {"stone": "wood_pickaxe", "coal": "wood_pickaxe", "iron": "stone_pickaxe", "diamond": "iron_pickaxe"}


@pytest.fixture(scope="module")
def env() -> Any:
    return vlgym.make(ID)


def arrange(env: Any, ahead: str = "grass", near: tuple[str, ...] = (), **inventory: int) -> tuple[Any, Any]:
    """Begin an episode on a meadow without creatures, and return world and player, who looks down at `ahead`."""
    if env.unwrapped.inner is None or env.unwrapped.turn > 300:
        env.reset(seed=0)
    world, player = env.unwrapped.inner._world, env.unwrapped.inner._player
    for thing in world.objects:
        if thing is not player:
            world.remove(thing)
    x, y = player.pos
    for i in range(-3, 4):
        for j in range(-3, 4):
            world[x + i, y + j] = "grass"
    world[x, y + 1] = ahead
    for place, material in enumerate(near):
        world[x - 1, y - 1 + place] = material
    player.facing = (0, 1)
    player._hunger = player._thirst = player._fatigue = 0
    player.inventory.update({**dict.fromkeys(player.inventory, 0), "health": 9, "food": 5, "drink": 5, "energy": 9})
    player.inventory.update(inventory)
    return world, player


def step(env: Any, action: str) -> tuple[float, bool, dict[str, Any]]:
    _, reward, terminated, _, info = env.step(env.parser.format([action], ""))
    assert not info["invalid_action"]
    return reward, terminated, info


def below(world: Any, player: Any) -> Any:
    return world[player.pos[0], player.pos[1] + 1]


def changes(env: Any, action: str, player: Any) -> dict[str, int]:
    """Play an action; return what it changes in the inventory."""
    before = dict(player.inventory)
    step(env, action)
    return {name: count - before[name] for name, count in player.inventory.items() if count != before[name]}


def test_a_seed_shows_the_same_pictures_in_every_process() -> None:
    hashes = {
        subprocess.run(
            [sys.executable, "-c", PLAY, junk],
            env={**os.environ, "PYTHONHASHSEED": junk},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for junk in ("1", "4321")
    }
    assert len(hashes) == 1


def test_the_text_names_every_action_and_every_achievement(env: Any) -> None:
    _, player = arrange(env)
    text, actions = env.unwrapped.instructions, env.unwrapped.legal_actions()
    assert len(actions) == 17
    assert len(player.achievements) == 22
    rules = text.partition("turns.\n")[2]
    assert [name for name in actions if name not in rules] == []
    assert [name for name in player.achievements if name.replace("_", " ") not in text] == []


@pytest.mark.parametrize(("way", "move"), [("left", (-1, 0)), ("right", (1, 0)), ("up", (0, -1)), ("down", (0, 1))])
def test_a_move_turns_and_steps_where_the_cell_is_free(env: Any, way: str, move: tuple[int, int]) -> None:
    world, player = arrange(env)
    x, y = player.pos
    step(env, f"move {way}")
    assert (tuple(player.pos), tuple(player.facing)) == ((x + move[0], y + move[1]), move)
    world[player.pos[0] + move[0], player.pos[1] + move[1]] = "tree"
    at = tuple(player.pos)
    step(env, f"move {way}")
    assert tuple(player.pos) == at


def test_lava_kills() -> None:
    env = vlgym.make(ID)
    arrange(env, "lava")
    reward, terminated, info = step(env, "move down")
    assert (reward, terminated, info["success"]) == (-0.9, True, False)


@pytest.mark.parametrize("material", COLLECTED)
def test_do_collects_what_the_pickaxe_can_break(env: Any, material: str) -> None:
    world, player = arrange(env, material)
    assert changes(env, "do", player) == {}
    assert below(world, player)[0] == material
    world, player = arrange(env, material, **{COLLECTED[material]: 1})
    assert changes(env, "do", player) == {material: 1}
    assert below(world, player)[0] == "path"


def test_do_collects_wood_and_saplings_and_drinks(env: Any) -> None:
    _, player = arrange(env, "tree")
    assert changes(env, "do", player) == {"wood": 1}
    _, player = arrange(env, "water")
    assert changes(env, "do", player) == {"drink": 1}
    _, player = arrange(env)
    assert any(changes(env, "do", player) == {"sapling": 1} for _ in range(60))


def test_do_strikes_creatures_and_eats_cows_and_ripe_plants(env: Any) -> None:
    for kind, deed, food in ((Cow, "eat_cow", 4), (Zombie, "defeat_zombie", 0), (Skeleton, "defeat_skeleton", 0)):
        world, player = arrange(env)
        at = (player.pos[0], player.pos[1] + 1)
        world.add(kind(world, at) if kind is Cow else kind(world, at, player))
        below(world, player)[1].health = 1
        done = player.achievements[deed]
        assert changes(env, "do", player).get("food", 0) == food
        assert player.achievements[deed] == done + 1
    world, player = arrange(env, sapling=1)
    assert changes(env, "place plant", player) == {"sapling": -1}
    plant = below(world, player)[1]
    assert isinstance(plant, Plant)
    plant.grown = 301
    assert changes(env, "do", player) == {"food": 4}
    assert player.achievements["eat_plant"]


@pytest.mark.parametrize(
    ("name", "uses", "ahead"),
    [("stone", {"stone": 1}, "lava"), ("stone", {"stone": 1}, "water"), ("table", {"wood": 2}, "sand"),
     ("furnace", {"stone": 4}, "path")],
)  # fmt: skip
def test_place_puts_it_ahead_for_its_price(env: Any, name: str, uses: dict[str, int], ahead: str) -> None:
    for have, works in ((uses, True), ({material: count - 1 for material, count in uses.items()}, False)):
        world, player = arrange(env, ahead, **have)
        paid = {material: -count for material, count in uses.items()}
        assert changes(env, f"place {name}", player) == (paid if works else {})
        assert below(world, player)[0] == (name if works else ahead)


@pytest.mark.parametrize("name", [*BY_TABLE, *BY_BOTH])
def test_make_takes_its_price_next_to_what_it_needs(env: Any, name: str) -> None:
    uses, near = (BY_TABLE[name], ("table",)) if name in BY_TABLE else (BY_BOTH[name], ("table", "furnace"))
    made = {**{material: -count for material, count in uses.items()}, name.replace(" ", "_"): 1}
    _, player = arrange(env, near=near, **uses)
    assert changes(env, f"make {name}", player) == made
    for missing in uses:
        _, player = arrange(env, near=near, **{**uses, missing: 0})
        assert changes(env, f"make {name}", player) == {}
    for count in range(len(near)):
        _, player = arrange(env, near=near[:count], **uses)
        assert changes(env, f"make {name}", player) == {}


def test_sleep_lasts_until_energy_is_full_and_noop_waits(env: Any) -> None:
    _, player = arrange(env)
    at = tuple(player.pos)
    assert changes(env, "noop", player) == {}
    assert not player.sleeping
    step(env, "sleep")
    assert not player.sleeping
    _, player = arrange(env, energy=8)
    step(env, "sleep")
    for _ in range(20):
        step(env, "move left")
        if not player.sleeping:
            break
        assert tuple(player.pos) == at
    assert player.achievements["wake_up"]
    assert player.inventory["energy"] == 9


def test_the_score_counts_achievements_once_and_eight_are_a_success() -> None:
    env = vlgym.make(ID)
    _, info = env.reset(seed=0)
    assert (info["score"], info["success"]) == (0, False)
    for reward in (1.0, 0.0):
        arrange(env, "tree")
        got, _, info = step(env, "do")
        assert (got, info["score"], info["success"]) == (reward, 1 / 22, False)
    _, player = arrange(env)
    others = [name for name in player.achievements if name != "collect_wood"]
    player.achievements.update(dict.fromkeys(others[:6], 1))
    assert step(env, "noop")[2]["success"] is False
    player.achievements[others[6]] = 1
    _, terminated, info = step(env, "noop")
    assert (info["score"], info["success"], terminated) == (8 / 22, True, False)

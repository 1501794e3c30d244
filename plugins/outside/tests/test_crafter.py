"""Crafter: the same episode in every process, each action's effect, and the score."""

import subprocess
import sys
from itertools import product
from typing import Any

import pytest
from crafter.objects import Cow, Plant, Skeleton, Zombie

import vlgym

ID = "vlgym/Crafter-v0"
PLAY = """
import hashlib, random, sys
from vlgym_outside.survival import World
junk = [object() for _ in range(int(sys.argv[1]))]
world, rng, pictures = World(size=(63, 63), seed=0, length=None), random.Random(0), hashlib.sha256()
picture, _ = world.reset(seed=0)
for _ in range(150):
    world._player.inventory.update(health=9, food=9, drink=9)
    pictures.update(picture.tobytes())
    picture, *_ = world.step(rng.randrange(6))
print(pictures.hexdigest())
"""
PRICES = {"wood": {"wood": 1}, "stone": {"wood": 1, "stone": 1}, "iron": {"wood": 1, "coal": 1, "iron": 1}}
COLLECTED = {"stone": "wood", "coal": "wood", "iron": "stone", "diamond": "iron"}  # and its pickaxe


@pytest.fixture(scope="module")
def env() -> Any:
    return vlgym.make(ID)


def arrange(env: Any, ahead: str = "grass", near: tuple[str, ...] = (), **inventory: int) -> tuple[Any, Any]:
    """Return the world, a meadow without creatures, and the player, who looks down at `ahead`."""
    if env.unwrapped.inner is None or env.unwrapped.turn > 300:
        env.reset(seed=0)
    world, player = env.unwrapped.inner._world, env.unwrapped.inner._player
    for thing in world.objects:
        if thing is not player:
            world.remove(thing)
    x, y = player.pos
    for i, j in product(range(-3, 4), repeat=2):
        world[x + i, y + j] = "grass"
    world[x, y + 1] = ahead
    for place, material in enumerate(near):
        world[x - 1, y - 1 + place] = material
    player.facing = (0, 1)
    player._hunger = player._thirst = player._fatigue = 0
    plain = {**dict.fromkeys(player.inventory, 0), "health": 9, "food": 5, "drink": 5, "energy": 9}
    player.inventory.update({**plain, **inventory})
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
    first, second = (
        subprocess.Popen([sys.executable, "-c", PLAY, junk], stdout=subprocess.PIPE) for junk in ("1", "4321")
    )
    assert first.communicate()[0] == second.communicate()[0] != b""


def test_the_text_names_every_action_and_every_achievement(env: Any) -> None:
    _, player = arrange(env)
    text, actions = env.unwrapped.instructions, env.unwrapped.legal_actions()
    assert (len(actions), len(player.achievements)) == (17, 22)
    rules = text.partition("turns.\n")[2]
    assert [name for name in actions if name not in rules] == []
    assert [name for name in player.achievements if name.replace("_", " ") not in text] == []


def test_a_move_turns_and_steps_where_the_cell_is_free(env: Any) -> None:
    for way, (dx, dy) in {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}.items():
        world, player = arrange(env)
        x, y = player.pos[0] + dx, player.pos[1] + dy
        step(env, f"move {way}")
        assert (*player.pos, *player.facing) == (x, y, dx, dy)
        world[x + dx, y + dy] = "tree"
        step(env, f"move {way}")
        assert tuple(player.pos) == (x, y)


def test_do_collects_what_the_pickaxe_can_break(env: Any) -> None:
    for material, kind in COLLECTED.items():
        for count, after in ((0, material), (1, "path")):
            world, player = arrange(env, material, **{f"{kind}_pickaxe": count})
            assert changes(env, "do", player) == ({material: 1} if count else {})
            assert below(world, player)[0] == after


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
    ("name", "material", "price", "ahead"),
    [
        ("stone", "stone", 1, "lava"), ("stone", "stone", 1, "water"), ("table", "wood", 2, "sand"),
        ("furnace", "stone", 4, "path"),
    ],
)  # fmt: skip
def test_place_puts_it_ahead_for_its_price(env: Any, name: str, material: str, price: int, ahead: str) -> None:
    for count in (price, price - 1):
        world, player = arrange(env, ahead, **{material: count})
        works = count == price
        assert changes(env, f"place {name}", player) == ({material: -price} if works else {})
        assert below(world, player)[0] == (name if works else ahead)


@pytest.mark.parametrize("tool", ["pickaxe", "sword"])
@pytest.mark.parametrize("kind", PRICES)
def test_make_takes_its_price_next_to_what_it_needs(env: Any, kind: str, tool: str) -> None:
    price, near = PRICES[kind], ("table", "furnace") if kind == "iron" else ("table",)
    _, player = arrange(env, near=near, **price)
    made = {**dict.fromkeys(price, -1), f"{kind}_{tool}": 1}
    assert changes(env, f"make {kind} {tool}", player) == made
    lacks = [(near, {**price, material: 0}) for material in price]
    lacks += [(near[:count], price) for count in range(len(near))]
    for places, materials in lacks:
        _, player = arrange(env, near=places, **materials)
        assert changes(env, f"make {kind} {tool}", player) == {}


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


def test_the_score_counts_achievements_once_eight_are_a_success_and_lava_kills(env: Any) -> None:
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
    arrange(env, "lava")
    assert step(env, "move down")[:2] == (-0.9, True)

"""Picture, text and reward of each id."""

import re
from importlib import import_module

import gymnasium
import numpy as np
import pytest
from vlgym_miniworld.tasks import name_thing

import vlgym
from vlgym.errors import UserError

IDS = [spec.id for spec in vlgym.get_registry().specs.values() if spec.family == "miniworld"]
SEEDS = 20  # of Sign, in which each shape and colour is drawn


def place_before(env, entity, distance):
    """Put the agent `distance` metres before an entity, looking at it along +x."""
    world = env.world
    world.agent.pos = np.array([entity.pos[0] - distance, 0.0, entity.pos[2]])
    world.agent.dir = 0.0


def test_all_23_ids_of_miniworld_are_there(make):
    make("OneRoom", seed=0)  # registers MiniWorld's own ids
    theirs = {key.removeprefix("MiniWorld-") for key in gymnasium.registry if key.startswith("MiniWorld-")}
    assert len(theirs) == 23
    ours = {env_id.removeprefix("vlgym/") for env_id in IDS}
    assert {name for name in ours if name.endswith("-v0")} == theirs
    assert {f"{name.removesuffix('-v1')}-v0" for name in ours - theirs} <= theirs


@pytest.mark.parametrize(
    "env_id", ["vlgym/PutNext-v0", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in IDS)]
)
def test_the_actions_and_the_time_limit_are_miniworlds_own(make, env_id):
    env = make(env_id.removeprefix("vlgym/"), seed=0)
    raw = getattr(import_module("miniworld.envs"), env.world_name)(obs_width=16, obs_height=16)
    assert sorted(env.actions.values()) == list(range(raw.action_space.n))
    if np.isfinite(raw.max_episode_steps):  # RoomObjects has no limit
        newer = env_id.endswith("-v1")  # which have fewer turns
        assert env.max_turns < raw.max_episode_steps if newer else env.max_turns == raw.max_episode_steps
    raw.close()


def test_the_box_pays_one_minus_a_fifth_of_the_time_used(make, act):
    env = make("OneRoom", seed=3, max_turns=50)
    for _ in range(4):
        _, reward, terminated, _, info = act(env, "turn left")
        assert (reward, terminated, info["success"]) == (0.0, False, False)
    # The box's radius is 0.4 * sqrt(2) m, the agent's 0.4 m, and near is 1.1 * 0.17 m more: 1.153 m in all.
    box = env.world.box
    env.world.entities.remove(box)  # so that nothing but the distance counts
    box.pos = np.array([5.0, 0.0, 5.0])
    place_before(env, box, 1.153 + 0.15 + 0.01)
    _, reward, terminated, _, info = act(env, "move forward")
    assert (reward, terminated, info["success"]) == (0.0, False, False)
    _, reward, terminated, _, info = act(env, "move forward")
    assert reward == pytest.approx(1 - 0.2 * 6 / 50)
    assert terminated
    assert info["success"]


def test_sign_draws_shape_and_color_and_tells_only_the_shape(make):
    env = make("Sign")
    pairs = set()
    for seed in range(SEEDS):
        observation, _ = env.reset(seed=seed)
        shape = re.search(r"touch the (box|key) in the color", observation["text"]).group(1)
        assert env.SHAPES[env.world._goal] == shape
        pairs.add((shape, env.world._color_index))
        rng = np.random.default_rng(seed)  # the order and number of draws belong to the id
        assert (env.SHAPES.index(shape), env.world._color_index) == (rng.integers(2), rng.integers(3))
    assert len(pairs) == 6


def test_sign_pays_for_the_right_object_and_charges_for_any_other(make, act):
    env = make("Sign")
    for choice, pay in ((("box", "red"), 1.0), (("box", "blue"), -1.0), (("key", "red"), -1.0)):
        env.fixed_shape, env.fixed_color = choice
        env.reset(seed=0)
        # The red box stands at (9, 1); 1.8 m away is not near yet (1.74 m), one large step further is.
        env.world.agent.pos, env.world.agent.dir = np.array([7.2, 0.0, 1.0]), 0.0
        _, reward, terminated, _, info = act(env, "move forward")
        assert (reward, terminated, info["success"]) == (pay, True, pay > 0)


@pytest.mark.parametrize("name", ["RoomObjects", pytest.param("ThreeRooms", marks=pytest.mark.exhaustive)])
def test_the_named_thing_pays_and_other_things_do_not(make, act, name):
    env = make(name, seed=2)
    named = env.name_things()
    wanted = env.aim().removeprefix("the ")
    assert env.aim() in env.task()
    assert wanted in [thing for thing, _ in named.values()]
    other = next(entity for thing, entity in named.values() if thing != wanted)
    for entity, paid in ((other, False), (env._target, True)):
        env.world.agent.pos = entity.pos + np.array([-env.world.agent.radius - entity.radius - 0.05, 0.0, 0.0])
        assert env.world.near(env._target) == paid
        _, reward, terminated, _, info = act(env, "turn left")
        assert (terminated, info["success"], reward > 0.9) == (paid, paid, paid)


def test_the_things_of_threerooms_are_what_their_names_say(make):
    env = make("ThreeRooms", seed=0)
    named = list(env.name_things().values())
    assert [name_thing(thing) for _, thing in named][:4] == [name for name, _ in named][:4]


def test_a_fixed_target_is_kept_and_an_unknown_one_names_the_choices(make):
    env = make("RoomObjects", target="ball")
    for seed in range(3):
        env.reset(seed=seed)
        assert env.aim().endswith(" ball")
    with pytest.raises(UserError, match="Nearest: rubber duck"):
        make("ThreeRooms", target="ruber duck")


def test_the_named_thing_is_drawn_among_those_that_can_be_reached(make):
    env, aims = make("RoomObjects"), []
    for seed in (*range(6), 37):  # in 37 the first thing drawn cannot be reached
        env.reset(seed=seed)
        assert env.oracle(), seed
        aims.append(env.aim().split()[-1])
    assert len(set(aims[:-1])) > 1


def test_pickupobjects_counts_pays_one_each_and_succeeds_with_the_last(make):
    env = make("PickupObjects", seed=0, modality="none")
    total, terminated = 0.0, False
    while not terminated:
        observation, reward, terminated, _, info = env.step(env.solve())
        total += reward
        assert (info["score"], info["success"]) == (total / 5, terminated)
        assert f"Picked up: {int(total)} of 5." in observation["text"]
    assert total == 5.0


def test_collecthealth_costs_two_per_step_and_kills_after_fifty(make, act):
    env = make("CollectHealth", modality="none")
    observation, _ = env.reset(seed=0)
    assert "Health: 100." in observation["text"]
    for step in range(49):
        observation, reward, terminated, _, info = act(env, "turn left")
        assert (reward, terminated, info["success"]) == (2.0, False, False)
        assert f"Health: {98 - 2 * step}." in observation["text"]
    _, reward, terminated, _, info = act(env, "turn left")
    assert (reward, terminated, info["success"]) == (-100.0, True, False)


def test_domain_randomisation_changes_the_picture_and_the_steps_and_sign_refuses_it(make, act):
    plain, random = make("OneRoom"), make("OneRoom", domain_rand=True)
    assert not np.array_equal(plain.reset(seed=0)[0]["image"], random.reset(seed=0)[0]["image"])
    before = random.world.agent.dir
    act(random, "turn left")
    turned = np.degrees(random.world.agent.dir - before)
    assert 10 <= turned <= 20
    assert turned != pytest.approx(15)
    assert "about 15 degrees" in random.task()
    with pytest.raises(UserError, match="leave domain_rand=False"):
        make("Sign", domain_rand=True)


def test_words_name_what_is_in_view_with_its_direction_and_distance(make):
    env = make("OneRoom", seed=0, modality="text")
    env.world.box.pos = np.array([5.0, 0.0, 5.0])
    place_before(env, env.world.box, 2.0)
    for turned, words in (
        (0.0, "red box 2.0 m away, straight ahead"),
        (0.3, "red box 2.0 m away, 17 degrees to the right"),
        (-0.3, "red box 2.0 m away, 17 degrees to the left"),
        (np.pi, "nothing but walls and floor"),
    ):
        env.world.agent.dir = turned
        assert env.describe() == words


def test_a_thought_names_what_the_picture_shows_and_nothing_where_none_is_shown(make):
    for modality, turned, thought in (
        ("image", 0.0, "I see red box far ahead."), ("image", 0.3, "I see red box far right."),
        ("none", 0.0, "I see nothing."),
    ):  # fmt: skip
        env = make("OneRoom", seed=0, modality=modality)
        place_before(env, env.world.box, 2.0)
        env.world.agent.dir = turned
        assert env.think("move forward") == thought


def test_words_name_the_nearest_first_and_leave_the_picture_as_it_is(make):
    world = (env := make("Sidewalk", seed=1, image_size=(96, 128))).world
    shown = world.render_obs()
    metres = [float(words) for words in re.findall(r"([0-9.]+) m away", env.describe())]
    assert len(metres) > 1
    assert metres == sorted(metres)
    assert np.array_equal(world.render_obs(), shown)

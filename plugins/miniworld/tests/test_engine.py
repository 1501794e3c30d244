"""Worlds in one process: own rooms, own memory, silent, safe to fork, and clear about a missing driver."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import gymnasium
import numpy as np
import pytest
from vlgym_miniworld import engine
from vlgym_miniworld.plugin import PACKAGES

from vlgym.errors import UserError

TWO = ("FourRooms", "OneRoom")
SIZE = (48, 64)
SCRIPT = [2, 0, 2, 1, 1, 2]


def draw(names):
    """Open worlds, and return the frames of each while they take turns."""
    worlds = {name: engine.open_world(name, SIZE) for name in names}
    engine.open_world("Hallway", SIZE).close()
    frames = {name: [world.reset(seed=5)[0]] for name, world in worlds.items()}
    for action in SCRIPT:
        for name, world in worlds.items():
            frames[name].append(world.step(action)[0])
    for world in worlds.values():
        world.close()
    return frames


def test_interleaved_worlds_draw_the_frames_that_each_draws_alone():
    together = draw(TWO)
    for name in TWO:
        assert np.array_equal(draw([name])[name], together[name])
    assert not np.array_equal(*together.values())


def test_a_missing_library_is_one_message_with_the_apt_line(make):
    code = (
        "import ctypes, ctypes.util\n"
        "def hide(name, real):\n"
        "    wanted = lambda text: str(text).split('.')[0].removeprefix('lib') == 'EGL'\n"
        "    def loader(text, *args, **kwargs):\n"
        "        if wanted(text): raise OSError(f'{text}: cannot open shared object file')\n"
        "        return real(text, *args, **kwargs)\n"
        "    return loader\n"
        "ctypes.cdll.LoadLibrary = hide('', ctypes.cdll.LoadLibrary)\n"
        "import vlgym\n"
        "env = vlgym.make('vlgym/OneRoom-v0')\n"
        "try:\n"
        "    env.reset(seed=0)\n"
        "except vlgym.UserError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("MissingSystemPartError"), done.stdout + done.stderr
    assert f"apt-get install -y {' '.join(PACKAGES)}" in done.stdout
    assert done.stdout.count("\n") == 1


def test_workers_forked_after_opengl_was_opened_draw_the_right_frames(make):
    env = make("FourRooms", image_size=SIZE)
    expected = env.reset(seed=3)[0]["image"]
    workers = gymnasium.make_vec(
        "vlgym/FourRooms-v0", num_envs=2, vectorization_mode="async", image_size=SIZE,
        vector_kwargs={"context": "fork", "autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP},
    )  # fmt: skip
    try:
        workers.reset_async(seed=[3, 4])
        observation, _ = workers.reset_wait(timeout=60)
    finally:
        workers.close(timeout=10)
    assert np.array_equal(observation["image"][0], expected)
    assert not np.array_equal(observation["image"][1], expected)


def test_a_fork_of_a_driver_with_threads_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(engine, "_opened_in", os.getpid() + 1)
    monkeypatch.setattr(engine, "_fork_safe", False)
    with pytest.raises(UserError, match="forkserver"):
        engine.open_world("OneRoom", SIZE)


def test_another_thread_is_refused_in_one_line_and_changes_nothing(make):
    env = make("OneRoom-v1", seed=1)
    refused = [
        lambda: env.step("<action>turn left</action>"),
        lambda: env.inner.render_obs(),
        env.close,
        lambda: make("OneRoom-v1").reset(seed=1),
    ]
    with ThreadPoolExecutor(4) as threads:
        for answer in [threads.submit(call) for call in refused * 2]:
            with pytest.raises(UserError, match=r"^OpenGL belongs to the thread that first used .*$"):
                answer.result()
    after = env.reset(seed=1)[0]["image"]
    turned = env.step("<action>turn left</action>")[0]["image"]
    assert not np.array_equal(after, turned)


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("YMaze", {}),
        pytest.param("CollectHealth", {}, marks=pytest.mark.exhaustive),
        ("Sign", {"shape": "box", "color": "blue"}),
    ],
)
def test_a_seed_gives_miniworlds_own_episode_of_that_seed(make, act, name, choice):
    env = make(name, image_size=SIZE, **choice)
    first = env.reset(seed=11)[0]["image"]
    names = list(env.actions)
    ours = [act(env, names[action])[:2] for action in SCRIPT]
    import miniworld.envs

    raw = getattr(miniworld.envs, name)(obs_height=SIZE[0], obs_width=SIZE[1])
    frame = raw.reset(seed=11)[0]
    assert np.array_equal(frame["obs"] if choice else frame, first)
    for action, (observation, reward) in zip(SCRIPT, ours, strict=True):
        frame, raw_reward, *_ = raw.step(action)
        assert np.array_equal(frame["obs"] if choice else frame, observation["image"])
        assert raw_reward == reward
    raw.close()


def test_a_thing_that_is_picked_up_is_still_in_the_picture_as_miniworld_draws_it(make, act):
    env = make("PickupObjects", seed=11, image_size=SIZE)
    import miniworld.envs

    raw = miniworld.envs.PickupObjects(obs_height=SIZE[0], obs_width=SIZE[1])
    raw.reset(seed=11)
    while not raw.num_picked_up:
        action = env.oracle()
        ours = act(env, action)[0]["image"]
        assert np.array_equal(raw.step(env.actions[action])[0], ours)
    assert not np.array_equal(raw.render_obs(), ours)
    raw.close()

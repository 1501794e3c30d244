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

import vlgym
from vlgym.errors import UserError

TWO = ("FourRooms", "OneRoom")
SIZE = (48, 64)
SCRIPT = [2, 2, 0, 2, 1, 1, 2, 2]


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )  # fmt: skip


def frames_alone(name: str) -> list[np.ndarray]:
    world = engine.open_world(name, SIZE)
    frames = [world.reset(seed=5)[0], *(world.step(action)[0] for action in SCRIPT)]
    world.close()
    return frames


def test_interleaved_worlds_draw_the_frames_that_each_draws_alone():
    alone = {name: frames_alone(name) for name in TWO}
    worlds = {name: engine.open_world(name, SIZE) for name in TWO}
    engine.open_world("Hallway", SIZE).close()
    together = {name: [world.reset(seed=5)[0]] for name, world in worlds.items()}
    for action in SCRIPT:
        for name, world in worlds.items():
            together[name].append(world.step(action)[0])
    for name in TWO:
        worlds[name].close()
        for turn, (a, b) in enumerate(zip(alone[name], together[name], strict=True)):
            assert np.array_equal(a, b), f"{name}, frame {turn}"
    assert len({alone[name][0].tobytes() for name in TWO}) == 2


def test_a_missing_library_is_one_message_with_the_apt_line():
    done = run_python(
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
    assert done.stdout.startswith("MissingSystemPartError"), done.stdout + done.stderr
    assert f"apt-get install -y {' '.join(PACKAGES)}" in done.stdout
    assert done.stdout.count("\n") == 1


def test_workers_forked_after_opengl_was_opened_draw_the_right_frames():
    env = vlgym.make("vlgym/FourRooms-v0", image_size=SIZE)
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
        env.close()
    assert np.array_equal(observation["image"][0], expected)
    assert not np.array_equal(observation["image"][1], expected)


def test_a_fork_of_a_driver_with_threads_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(engine, "_opened_in", os.getpid() + 1)
    monkeypatch.setattr(engine, "_fork_safe", False)
    with pytest.raises(UserError, match="forkserver"):
        engine.open_world("OneRoom", SIZE)


def test_another_thread_is_refused_in_one_line_and_changes_nothing():
    env = vlgym.make("vlgym/OneRoom-v1", image_size=SIZE)
    env.reset(seed=1)
    refused = [
        lambda: env.step("<action>turn left</action>"),
        lambda: env.inner.render_obs(),
        env.close,
        lambda: vlgym.make("vlgym/OneRoom-v1").reset(seed=1),
    ]
    with ThreadPoolExecutor(4) as threads:
        for answer in [threads.submit(call) for call in refused * 2]:
            with pytest.raises(UserError, match=r"^OpenGL belongs to the thread that first used .*$"):
                answer.result()
    after = env.reset(seed=1)[0]["image"]
    turned = env.step("<action>turn left</action>")[0]["image"]
    assert not np.array_equal(after, turned)
    env.close()


def test_a_closed_world_says_that_it_is_closed():
    env = vlgym.make("vlgym/OneRoom-v1", image_size=SIZE)
    env.reset(seed=1)
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded, match="is closed"):
        env.step("nothing")


@pytest.mark.parametrize(
    ("name", "choice"), [("YMaze", {}), ("CollectHealth", {}), ("Sign", {"shape": "box", "color": "blue"})]
)
def test_a_seed_gives_miniworlds_own_episode_of_that_seed(name, choice):
    env = vlgym.make(f"vlgym/{name}-v0", image_size=SIZE, **choice)
    first = env.reset(seed=11)[0]["image"]
    names = list(env.actions)
    ours = [env.step(env.parser.format([names[action]]))[:2] for action in SCRIPT]
    import miniworld.envs

    raw = getattr(miniworld.envs, name)(obs_height=SIZE[0], obs_width=SIZE[1])
    frame = raw.reset(seed=11)[0]
    assert np.array_equal(frame["obs"] if choice else frame, first)
    for action, (observation, reward) in zip(SCRIPT, ours, strict=True):
        frame, raw_reward, *_ = raw.step(action)
        assert np.array_equal(frame["obs"] if choice else frame, observation["image"])
        assert raw_reward == reward
    raw.close()
    env.close()


def test_a_thing_that_is_picked_up_is_still_in_the_picture_as_miniworld_draws_it():
    env = vlgym.make("vlgym/PickupObjects-v0", image_size=SIZE)
    env.reset(seed=11)
    import miniworld.envs

    raw = miniworld.envs.PickupObjects(obs_height=SIZE[0], obs_width=SIZE[1])
    raw.reset(seed=11)
    while not raw.num_picked_up:
        action = env.oracle()
        ours = env.step(env.parser.format([action]))[0]["image"]
        assert np.array_equal(raw.step(env.actions[action])[0], ours)
    assert not np.array_equal(raw.render_obs(), ours)
    raw.close()
    env.close()

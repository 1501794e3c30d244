"""Worlds in one process: own rooms, own memory, silent, safe to fork, and clear about a missing driver."""

import hashlib
import json
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from vlgym_miniworld import engine
from vlgym_miniworld.plugin import PACKAGES

import vlgym
from vlgym.errors import MissingSystemPartError, UserError

FOUR = ("Hallway", "FourRooms", "WallGap", "OneRoom")
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
    alone = {name: frames_alone(name) for name in FOUR}
    worlds = {name: engine.open_world(name, SIZE) for name in FOUR}
    together = {name: [world.reset(seed=5)[0]] for name, world in worlds.items()}
    for action in SCRIPT:
        for name, world in worlds.items():
            together[name].append(world.step(action)[0])
    for name in FOUR:
        worlds[name].close()
        for turn, (a, b) in enumerate(zip(alone[name], together[name], strict=True)):
            assert np.array_equal(a, b), f"{name}, frame {turn}"
    assert len({alone[name][0].tobytes() for name in FOUR}) == 4


def test_closing_one_world_leaves_the_others_as_they_were():
    expected = frames_alone("FourRooms")
    kept, closed = engine.open_world("FourRooms", SIZE), engine.open_world("Hallway", SIZE)
    frames = [kept.reset(seed=5)[0]]
    closed.reset(seed=1)
    closed.close()
    closed.close()
    frames += [kept.step(action)[0] for action in SCRIPT]
    kept.close()
    assert all(np.array_equal(a, b) for a, b in zip(expected, frames, strict=True))


def test_thirty_environments_opened_and_closed_leave_the_memory_as_it_was():
    done = run_python(
        "import vlgym\n"
        "def rss():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * 4096 / 2**20\n"
        "def cycle(seed):\n"
        "    env = vlgym.make('vlgym/OneRoom-v0'); env.reset(seed=seed)\n"
        "    env.step('<action>turn left</action>'); env.close()\n"
        "for seed in range(5): cycle(seed)\n"
        "before = rss()\n"
        "for seed in range(30): cycle(seed)\n"
        "print(rss() - before)\n"
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 3.0  # MiB; MiniWorld's own close keeps 1.7 MiB or more of each


def test_constructing_and_listing_import_neither_miniworld_nor_opengl():
    done = run_python(
        "import sys, gymnasium, vlgym\n"
        "env = gymnasium.make('vlgym/FourRooms-v0')\n"
        "env.observation_space, env.action_space\n"
        "print([name for name in ('miniworld', 'pyglet', 'OpenGL') if name in sys.modules])\n"
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_nothing_is_printed(capfd):
    env = vlgym.make("vlgym/TMaze-v0", image_size=SIZE)
    env.reset(seed=0)
    env.step("<action>turn left</action>")
    env.close()
    captured = capfd.readouterr()
    assert captured.out == ""


@pytest.mark.parametrize("library", ["EGL", "GL", "GLU"])
def test_a_missing_library_is_one_message_with_the_apt_line(library):
    done = run_python(
        "import ctypes, ctypes.util\n"
        "def hide(name, real):\n"
        f"    wanted = lambda text: str(text).split('.')[0].removeprefix('lib') == '{library}'\n"
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


def test_a_driver_without_a_usable_configuration_gets_the_same_message(monkeypatch):
    engine.open_world("OneRoom", SIZE).close()
    from pyglet.window import NoSuchConfigException

    def fail(name):
        raise NoSuchConfigException("No standard config is available.")

    monkeypatch.setattr(engine.importlib, "import_module", fail)
    with pytest.raises(MissingSystemPartError, match="apt-get install -y libegl1"):
        engine._import_miniworld()


def test_the_packages_of_the_message_are_those_of_the_specs():
    assert engine.SYSTEM_PACKAGES == PACKAGES


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


def test_workers_started_afresh_draw_the_same_frames():
    env = vlgym.make("vlgym/Hallway-v0", image_size=SIZE)
    expected = env.reset(seed=3)[0]["image"]
    env.close()
    # The id with its module lets a fresh process find it without an import.
    workers = gymnasium.make_vec(
        "vlgym:vlgym/Hallway-v0", num_envs=1, vectorization_mode="async", image_size=SIZE,
        vector_kwargs={"context": "forkserver"},
    )  # fmt: skip
    try:
        workers.reset_async(seed=[3])
        observation, _ = workers.reset_wait(timeout=90)
    finally:
        workers.close(timeout=10)
    assert np.array_equal(observation["image"][0], expected)


def test_a_fork_of_a_driver_with_threads_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(engine, "_opened_in", os.getpid() + 1)
    monkeypatch.setattr(engine, "_fork_safe", False)
    with pytest.raises(UserError, match="forkserver"):
        engine.open_world("OneRoom", SIZE)


def test_the_same_seed_draws_the_same_frames_in_another_process():
    code = (
        "import hashlib, json, vlgym\n"
        "found = {}\n"
        "for name in ('OneRoom', 'Sign', 'PutNext'):\n"
        "    env = vlgym.make(f'vlgym/{name}-v0', image_size=(48, 64))\n"
        "    env.reset(seed=9)\n"
        "    for action in ('turn left', 'move forward', 'move forward'):\n"
        "        env.step(f'<action>{action}</action>')\n"
        "    found[name] = hashlib.sha256(env.image().tobytes()).hexdigest()\n"
        "print(json.dumps(found))\n"
    )
    here = {}
    for name in ("OneRoom", "Sign", "PutNext"):
        env = vlgym.make(f"vlgym/{name}-v0", image_size=SIZE)
        env.reset(seed=9)
        for action in ("turn left", "move forward", "move forward"):
            env.step(f"<action>{action}</action>")
        here[name] = hashlib.sha256(env.image().tobytes()).hexdigest()
        env.close()
    assert json.loads(run_python(code, PYTHONHASHSEED="77").stdout) == here


@pytest.mark.parametrize("name", ["OneRoom", "YMaze", "CollectHealth"])
def test_a_seed_gives_miniworlds_own_episode_of_that_seed(name):
    env = vlgym.make(f"vlgym/{name}-v0", image_size=SIZE)
    first = env.reset(seed=11)[0]["image"]
    names = list(env.actions)
    ours = [env.step(env.parser.format([names[action]]))[:2] for action in SCRIPT]
    import miniworld.envs

    raw = getattr(miniworld.envs, name)(obs_height=SIZE[0], obs_width=SIZE[1])
    assert np.array_equal(raw.reset(seed=11)[0], first)
    for action, (observation, reward) in zip(SCRIPT, ours, strict=True):
        frame, raw_reward, *_ = raw.step(action)
        assert np.array_equal(frame, observation["image"])
        assert raw_reward == reward
    raw.close()
    env.close()

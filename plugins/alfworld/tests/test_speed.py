"""Reset and step times, in processor time: the machine's other work does not count."""

import time

import gymnasium
import numpy as np

import vlgym  # noqa: F401


def test_a_new_game_begins_in_under_100_milliseconds_and_a_step_takes_under_40():
    env = gymnasium.make("vlgym/ALFWorld-v0")
    env.reset(seed=0)
    resets, steps = [], []
    for seed in range(1, 31):
        begun = time.process_time()
        env.reset(seed=seed)
        resets.append(time.process_time() - begun)
        for _ in range(3):
            reply = env.action_space.sample()
            begun = time.process_time()
            env.step(reply)
            steps.append(time.process_time() - begun)
    env.close()
    assert np.median(resets) < 0.100
    assert np.median(steps) < 0.040

"""`python -m vlgym_screens`: print steps per second of random play, with and without pictures, and times of resets."""

from __future__ import annotations

import time
from statistics import median

import vlgym
from vlgym.env.seeding import episode_seed

from .plugin import vlgym_envs


def measure_speed(env_id: str, modality: str, episodes: int = 100) -> tuple[float, float]:
    """Return steps per second of processor time, drawing included, and the median time of a reset in milliseconds."""
    env, resets, stepping, steps = vlgym.make(env_id, modality=modality), list[float](), 0.0, 0
    for number in range(episodes):
        begun = time.process_time()
        env.reset(seed=episode_seed(env_id, "train", number))
        resets.append(time.process_time() - begun)
        over = False
        while not over:
            reply = env.action_space.sample()
            begun = time.process_time()
            _, _, terminated, truncated, _ = env.step(reply)
            stepping, steps, over = stepping + time.process_time() - begun, steps + 1, terminated or truncated
    return steps / stepping, 1000 * median(resets)


if __name__ == "__main__":
    for spec in vlgym_envs():
        for modality in ("image", "none"):
            speed, reset = measure_speed(spec.id, modality)
            print(f"{spec.title:<13} {modality:<6} {speed:7.0f} steps/s  reset {reset:.1f} ms")

"""A hash of what an environment does: fixed seeds and fixed replies in, text, reward, flags and info out.

Pixels are left out (renderers differ between machines); numbers are rounded to 6 decimals (so do the last bits of
sines). Scripted episodes take legal actions drawn by a generator of their own, every fifth reply unreadable; one more
episode is the oracle's, because random play seldom sees what success pays.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from ..env import VLEnv
from ..seeding import episode_seed
from ..types import Image

EPISODES = 3
TURNS = 40
ORACLE_TURNS = 300
GARBAGE = "no action here"
UNHASHED = ("span",)
"""What `info["vlgym"]` says of the reply alone: the parser's hash covers it."""


def fingerprint(env: VLEnv, env_id: str, episodes: int = EPISODES, turns: int = TURNS) -> str:
    """Return 16 hexadecimal digits; equal in every process and on every machine while the behaviour is the same."""
    digest = hashlib.sha256()
    for index in range(episodes):
        for line in transcript(env, env_id, index, turns):
            digest.update(line.encode())
    for line in transcript(env, env_id, episodes, ORACLE_TURNS, oracle=True):
        digest.update(line.encode())
    return digest.hexdigest()[:16]


def transcript(
    env: VLEnv,
    env_id: str,
    index: int,
    turns: int = TURNS,
    images: list[Image] | None = None,
    oracle: bool = False,
) -> list[str]:
    """Play one episode of the train split, scripted or (where it knows what to do) the oracle's.

    Return one JSON line per turn, and append the images to `images` if given.
    """
    replies = np.random.default_rng(index)
    observation, info = env.reset(seed=episode_seed(env_id, "train", index))
    lines = [_line(observation, 0.0, False, False, info)]
    for turn in range(turns):
        if images is not None:
            images.append(observation["image"])
        text = (env.solve() if oracle else None) or scripted_reply(env, replies, turn)
        observation, reward, terminated, truncated, info = env.step(text)
        lines.append(_line(observation, reward, terminated, truncated, info))
        if terminated or truncated:
            break
    if images is not None:
        images.append(observation["image"])
    return lines


def scripted_reply(env: VLEnv, replies: np.random.Generator, turn: int) -> str:
    """Return an unreadable reply at every fifth turn, else a legal action drawn from `replies`."""
    legal = env.legal_actions()
    choice = legal[int(replies.integers(len(legal)))] if legal else ""
    return GARBAGE if turn % 5 == 4 else env.parser.format([choice])


def _line(observation: dict[str, Any], reward: float, terminated: bool, truncated: bool, info: dict[str, Any]) -> str:
    details = {name: value for name, value in info["vlgym"].items() if name not in UNHASHED}
    told = plain({**info, "vlgym": details})
    return json.dumps([observation["text"], round(reward, 6), terminated, truncated, told], sort_keys=True)


def plain(value: Any) -> Any:
    """Return `value` as JSON-able data with floats rounded to 6 decimals."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (float, np.floating)):
        return round(float(value), 6) + 0.0
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    return value

"""A policy that knows every picture of the canaries, and may lose some."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fault_server import hash_pixels

from vlgym.env.seeding import episode_seed
from vlgym.integrations.canary import CANARIES
from vlgym.registry.making import make
from vlgym.types import Reply, Turn

Drop = Callable[[int], bool]
"""Says of a picture's place in a prompt, from 1, whether it is dropped."""


class Seer:
    """Answers the first 20 test episodes of each canary by the pictures that are left."""

    name = "seer"

    def __init__(self, drop: Drop = lambda place: False) -> None:
        self.drop, self.known = drop, _list_pictures()

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply(self.answer(_pictures(turn), list(turn.legal))) for turn in turns]

    def answer(self, pictures: Sequence[np.ndarray], legal: list[str]) -> str:
        """Return the content of the third picture where 12 words are legal, else of the first."""
        left = [image for place, image in enumerate(pictures, 1) if not self.drop(place)]
        seen = [self.known[hash_pixels(image)] for image in left]
        if legal == ["next"] or not seen:
            return f"<action>{legal[0]}</action>"
        return f"<action>{seen[min(2 if len(legal) == 12 else 0, len(seen) - 1)]}</action>"


def _pictures(turn: Turn) -> list[np.ndarray]:
    parts = (part for message in turn.messages for part in message["content"])
    return [part["image"] for part in parts if part["type"] == "image"]


@functools.cache
def _list_pictures() -> dict[str, str]:
    """Return what every picture shows, by its hash."""
    known = {}
    for env_id in CANARIES:
        env: Any = make(env_id)
        for number in range(20):
            observation, _ = env.reset(seed=episode_seed(env_id, "test", number))
            for answer in env.shown:
                known[hash_pixels(observation["image"])] = answer
                observation = env.step(env.solve())[0]
    return known

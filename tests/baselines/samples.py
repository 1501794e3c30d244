"""Pictures and messages for the learner tests."""

from __future__ import annotations

import numpy as np

INSTRUCTIONS = (
    "You see a picture. Reach the target, then end your reply with <action>ACTION</action>.\n\nLegal actions: "
)


def picture(seed: int, size: tuple[int, int] = (60, 110)) -> np.ndarray:
    """[H, W, 3] uint8 noise."""
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)


def messages(image: np.ndarray, text: str) -> list[dict]:
    """One user turn."""
    return [{"role": "user", "content": [{"type": "image", "image": image}, {"type": "text", "text": text}]}]

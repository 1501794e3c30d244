"""Recorded episodes are played again from their seeds and replies, and each turn is compared."""

import math
from typing import Any

from ..env import VLEnv
from ..errors import FailedError, UserError
from ..registry import get_registry
from ..types import Image, StepRecord
from .trajectory import hash_picture

ROUNDING = 1e-6  # rewards that differ by less are equal: machines differ in the last bits of sines


def replay(env: VLEnv, episode: list[StepRecord]) -> tuple[list[Image], list[str]]:
    """Play an episode again and return its pictures and texts, the last observation's included.

    Texts, rewards, endings, success, scores and the reading of replies are compared; pictures too,
    where they were read and the card says that they are exact.

    Raises:
        FailedError: a turn differs, or the environment fails; the message names the first one.
    """
    place = f"{episode[0].part}, episode {episode[0].episode}"
    try:
        observation, _ = env.reset(seed=episode[0].seed)
        images, texts = [observation["image"]], [observation["text"]]
        for turn, record in enumerate(episode):
            place = f"{record.part}, episode {record.episode}, turn {turn}"
            recorded = {**vars(record), "picture": hash_picture(record.image)}
            live: dict[str, Any] = {"text": texts[-1], "level": None}
            if record.image.size and is_exact(record.env_id):
                live["picture"] = hash_picture(images[-1])
            observation, live["reward"], live["terminated"], live["truncated"], info = env.step(record.reply)
            images.append(observation["image"])
            texts.append(observation["text"])

            # Read the turn as a record does; the first field that differs is the answer.
            details = info["vlgym"]
            live |= {"parse": details["parse"], "span": details["span"]}
            live |= {"actions": tuple(details["actions"]), "invalid": info["invalid_action"]}
            live |= {"success": info["success"], "score": info.get("score")}
            if wrong := next((name for name in live if not _equal(recorded[name], live[name])), None):
                one, other = _shorten(recorded[wrong], live[wrong])
                raise FailedError(f"{place}: {wrong} is {one} as recorded, {other} as replayed.")
    except UserError:
        raise
    except Exception as error:
        raise FailedError(f"{place}: the environment failed: {type(error).__name__}: {error}") from error
    return images, texts


def is_exact(env_id: str) -> bool:
    """True if an environment's pictures are equal on all machines."""
    return get_registry().get(env_id).pictures == "exact"


def _equal(recorded: Any, value: Any) -> bool:
    if isinstance(recorded, float) and isinstance(value, (int, float)):
        return math.isclose(recorded, value, rel_tol=1e-9, abs_tol=ROUNDING)
    return bool(recorded == value)


def _shorten(*values: Any) -> list[str]:
    """Return values in words, texts from a little before their first difference."""
    if all(isinstance(value, str) for value in values):
        places = enumerate(zip(*values, strict=False))
        same = next((at for at, (a, b) in places if a != b), min(map(len, values)))
        values = tuple(value[max(0, same - 20) :] for value in values)
    return [f"{value!r:.80}" for value in values]

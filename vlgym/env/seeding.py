"""The only rule that turns (environment id, split, index) into an episode seed.

The split's number stands in the top bits of the seed, so no two splits can share one. Different
seeds may still begin in the same state where an environment has few states (NumberLine has 30).
"""

import hashlib

from ..errors import UserError, check_choice

SPLITS = ("train", "val", "test")
_HASH_BITS = 58


def episode_seed(env_id: str, split: str, index: int) -> int:
    """Return the seed of episode `index` of `split`, a non-negative integer below 2**60.

    Raises:
        UserError: unknown split or negative index.

    >>> episode_seed("vlgym/OneRoom-v0", "test", 0)
    623248570999363855
    """
    check_choice("split", split, SPLITS)
    if index < 0:
        raise UserError(f"Episode index {index} of {env_id} is negative; indices begin at 0.")
    digest = hashlib.sha256(f"{env_id}\n{split}\n{index}".encode()).digest()
    low = int.from_bytes(digest[:8], "big") >> (64 - _HASH_BITS)
    return (SPLITS.index(split) << _HASH_BITS) | low


def split_of(seed: int) -> str | None:
    """Return the split that a seed belongs to, or `None` if `episode_seed` cannot have made it.

    >>> split_of(episode_seed("vlgym/OneRoom-v0", "val", 7))
    'val'
    >>> split_of(-1) is None
    True
    """
    code = seed >> _HASH_BITS
    return SPLITS[code] if 0 <= code < len(SPLITS) else None

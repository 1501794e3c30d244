"""Episode seeds are stable, distinct, and say which split they belong to."""

import pytest

from vlgym.env.seeding import SPLITS, episode_seed, split_of
from vlgym.errors import UserError


def test_seeds_are_these_numbers_for_ever() -> None:
    # printf 'vlgym/OneRoom-v0\ntrain\n0' | sha256sum begins with e98048cc778459d6, the other one with dd4805eaa7e9d2d9;
    # the first 58 bits are kept, and test has code 2.
    assert 0xE98048CC778459D6 >> 6 == episode_seed("vlgym/OneRoom-v0", "train", 0) == 0x3A6012331DE1167
    assert episode_seed("vlgym/OneRoom-v0", "test", 7) == 0xB752017AA9FA74B


def test_the_split_stands_in_the_bits_above_the_58th() -> None:
    for code, split in enumerate(SPLITS):
        seed = episode_seed("a/B-v0", split, 7)
        assert seed >> 58 == code
        assert split_of(seed) == split
    assert split_of(3 << 58) is None


def test_an_unknown_split_and_a_negative_index_are_refused() -> None:
    with pytest.raises(UserError, match="negative"):
        episode_seed("a/B-v0", "train", -1)
    with pytest.raises(UserError, match=r"split='trian' is not one of train, val, test\. Nearest: train"):
        episode_seed("a/B-v0", "trian", 0)

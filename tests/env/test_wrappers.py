"""The fitting of images, and their way through PNG; Gymnasium's own wrappers work unchanged."""

import base64

import gymnasium
import numpy as np
import pytest
from toys import make_walk

from vlgym.env.rendering import data_url, decode_png, encode_png, fit_image
from vlgym.errors import UserError
from vlgym.registry.making import unwrap


def test_gymnasiums_statistics_wrapper_counts_an_episode() -> None:
    env = gymnasium.wrappers.RecordEpisodeStatistics(make_walk())
    env.reset(seed=0, options={"target": 3})
    infos = [env.step("<action>right</action>")[4] for _ in range(3)]
    assert (infos[-1]["episode"]["r"], infos[-1]["episode"]["l"]) == (1.0, 3)


def test_unwrap_refuses_what_is_no_vlenv() -> None:
    with pytest.raises(UserError, match="CartPoleEnv is not a VLEnv"):
        unwrap(gymnasium.make("CartPole-v1"))


def test_an_image_of_the_right_size_is_copied() -> None:
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    fitted = fit_image(image, (2, 2))
    assert np.array_equal(fitted, image)
    assert not np.shares_memory(fitted, image)


def test_a_wide_image_gets_black_bars_above_and_below() -> None:
    fitted = fit_image(np.full((2, 4, 3), 200, np.uint8), (8, 8))
    assert (fitted[2:6] == 200).all()
    assert (fitted[:2] == 0).all()
    assert (fitted[6:] == 0).all()


def test_shrinking_averages_whole_blocks() -> None:
    image = np.zeros((4, 4, 3), np.uint8)
    image[:2, :2] = [[[0], [40]], [[80], [120]]]
    assert fit_image(image, (2, 2))[:, :, 0].tolist() == [[60, 0], [0, 0]]


def test_png_is_lossless() -> None:
    image = np.random.default_rng(0).integers(0, 256, (7, 5, 3)).astype(np.uint8)
    assert np.array_equal(decode_png(encode_png(image)), image)
    assert np.array_equal(decode_png(encode_png(image[::-1, ::-1])), image[::-1, ::-1])
    head, _, body = data_url(image).partition(",")
    assert head == "data:image/png;base64"
    assert np.array_equal(decode_png(base64.b64decode(body)), image)

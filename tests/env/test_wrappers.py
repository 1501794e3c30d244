"""The fitting of images, and their way through PNG; Gymnasium's own wrappers work unchanged."""

import base64

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from toy_games import NIM
from toys import installed, make_spec, make_walk

from vlgym.env.rendering import data_url, decode_png, encode_png, fit_image
from vlgym.errors import UserError
from vlgym.wrappers import DEFAULT_ACTIONS, Numbers


def test_shrinking_averages_whole_blocks_and_an_image_of_the_right_size_is_copied() -> None:
    image = np.zeros((4, 4, 3), np.uint8)
    image[:2, :2] = [[[0], [40]], [[80], [120]]]
    assert fit_image(image, (2, 2))[:, :, 0].tolist() == [[60, 0], [0, 0]]
    assert not np.shares_memory(fit_image(image, (4, 4)), image)


def test_png_is_lossless() -> None:
    image = np.random.default_rng(0).integers(0, 256, (7, 5, 3)).astype(np.uint8)
    assert np.array_equal(decode_png(encode_png(image[::-1, ::-1])), image[::-1, ::-1])
    head, _, body = data_url(image).partition(",")
    assert head == "data:image/png;base64"
    assert np.array_equal(decode_png(base64.b64decode(body)), image)


def test_numbers_takes_the_index_of_a_legal_action_and_shows_the_picture_alone() -> None:
    env, twin = Numbers(make_walk()), make_walk()
    seen, info = env.reset(seed=1, options={"target": 3})
    assert np.array_equal(seen, twin.reset(seed=1, options={"target": 3})[0]["image"])
    assert env.action_space == gymnasium.spaces.Discrete(DEFAULT_ACTIONS)
    legal = twin.legal_actions()
    assert info["action_mask"].tolist() == [1] * len(legal) + [0] * (DEFAULT_ACTIONS - len(legal))
    for action in (np.int64(legal.index("right")), np.array(legal.index("left"))):
        seen, reward, *_, info = env.step(action)
        due = twin.step(f"<action>{legal[int(action)]}</action>")
        assert np.array_equal(seen, due[0]["image"])
        assert (reward, info["vlgym"]["actions"]) == (due[1], [legal[int(action)]])


def test_numbers_takes_an_index_of_no_legal_action_as_a_reply_without_one() -> None:
    env = Numbers(make_walk(invalid_penalty=0.25), n=5, text=True)
    env.reset(seed=1)
    seen, reward, *_, info = env.step(4)
    assert (reward, info["invalid_action"], info["vlgym"]["parse"]) == (-0.25, True, "no_action")
    assert seen["text"]
    for wrong in ("left", 0.5, None):
        with pytest.raises(UserError, match=r"^An action is a whole number below 5; got "):
            env.step(wrong)
    with pytest.raises(UserError, match=r"2 actions are legal, and n=1: give Numbers\(env, n=2\) or more\."):
        Numbers(make_walk(), n=1).reset(seed=1)
    with pytest.raises(UserError, match="n=0 must be >= 1"):
        Numbers(make_walk(), n=0)


@pytest.mark.usefixtures("toys_importable")
@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.exhaustive)])
def test_a_vector_of_numbers_samples_legal_actions_and_its_masks_are_never_empty(mode: str) -> None:
    with installed(make_spec(), NIM):
        for text in (False, True):
            check_env(Numbers(make_walk(), text=text), skip_render_check=True)
        vector = gymnasium.make_vec("vlgym/Nim-v0", num_envs=4, vectorization_mode=mode, wrappers=[Numbers])
        vector.action_space.seed(0)
        _, infos = vector.reset(seed=1)
        acted, ended, over = 0, 0, np.zeros(4, bool)
        for _ in range(30):
            assert infos["action_mask"].any(axis=1).all()
            chosen = vector.action_space.sample(tuple(infos["action_mask"]))
            went_on = ~over
            _, _, terminated, truncated, infos = vector.step(chosen)
            over = terminated | truncated
            assert not infos["invalid_action"][went_on].any()
            acted, ended = acted + int(went_on.sum()), ended + int(over.sum())
        vector.close()
    assert acted > 60
    assert ended > 4

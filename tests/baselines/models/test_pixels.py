"""Pictures become the patches of the library's own image processor (its PIL classes), to the bit."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image as PillowImage
from publish import publish
from samples import picture
from tiny_families import EACH
from transformers import AutoImageProcessor

from baselines.models.load import load_family
from vlgym.errors import UserError

SIDES = st.integers(1, 400)


@pytest.fixture(scope="module", params=EACH)
def pairs(request, model_folder, tmp_path_factory):
    """(family, library's image processor) of published settings, without a budget and with one."""
    name, made = request.param, []
    folder = publish(model_folder(name), tmp_path_factory.mktemp("pixels") / name, name)
    for budget in (None, 9):
        family = load_family(str(folder), image_tokens=budget)
        size = dict(zip(("shortest_edge", "longest_edge"), family.pixels, strict=True))
        made.append((family, AutoImageProcessor.from_pretrained(folder, backend="pil", size=size)))
    return made


@pytest.fixture
def change(model_folder, tmp_path):
    """Publish a model with other settings of its image processor; return its folder."""

    def change(name: str, settings: dict, without: tuple[str, ...] = ()) -> Path:
        folder = publish(model_folder(name), tmp_path / "model", name)
        file = folder / "preprocessor_config.json"
        saved = json.loads(file.read_text())
        saved = {key: value for key, value in saved.items() if key not in without}
        assert all(saved.get(key) != value for key, value in settings.items())
        file.write_text(json.dumps(saved | settings))
        return folder

    return change


def compare(family, processor, image: np.ndarray) -> None:
    expected = processor(images=[PillowImage.fromarray(image)], return_tensors="pt")
    prepared = family.prepare_image(image)
    assert list(prepared.grid) == expected["image_grid_thw"][0].tolist()
    assert prepared.tokens == prepared.grid[1] * prepared.grid[2] // 4
    assert torch.equal(family.patchify(prepared), expected["pixel_values"])


@example(height=300, width=300, seed=0)
@example(height=1, width=1, seed=0)
@example(height=2, width=400, seed=0)
@given(height=SIDES, width=SIDES, seed=st.integers(0, 9))
def test_size_and_patches_are_those_of_the_librarys_image_processor(pairs, height, width, seed):
    if max(height, width) <= 200 * min(height, width):  # the library refuses longer pictures
        for pair in pairs:
            compare(*pair, picture(seed, (height, width)))


@pytest.mark.parametrize("resample", [2, 0])
def test_mean_deviation_and_resampling_are_those_that_are_saved_with_the_model(change, resample):
    own = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "resample": resample}
    folder = change("qwen2_vl", own)
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    compare(load_family(str(folder)), processor, picture(1, (97, 130)))


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ({"min_pixels": 784, "max_pixels": 7840}, (784, 7840)),
        ({"size": {"min_pixels": 784, "max_pixels": 7840}}, (784, 7840)),
        ({"size": {"shortest_edge": 784, "longest_edge": 7840}}, (784, 7840)),
        ({"size": {"shortest_edge": 784, "longest_edge": 7840}, "max_pixels": 15680}, (784, 15680)),
        ({"image_mean": [0.5] * 3}, (3136, 1003520)),
    ],
)
def test_old_and_new_names_of_sizes_are_read_as_in_the_library(change, saved, expected):
    folder = change("qwen2_vl", saved, without=("size", "min_pixels", "max_pixels"))
    assert load_family(str(folder)).pixels == expected
    if "min_pixels" not in saved.get("size", {}):  # only earlier releases read them
        size = AutoImageProcessor.from_pretrained(folder, backend="pil").size
        assert (size["shortest_edge"], size["longest_edge"]) == expected


@pytest.mark.parametrize(
    ("name", "saved", "words"),
    [
        ("qwen2_vl", {"patch_size": 16}, "its patch_size is 16, the model's 14"),
        ("qwen2_vl", {"do_rescale": False}, "asks for do_rescale = false, which is not supported"),
        ("qwen3_vl", {"rescale_factor": 1.0}, "rescale_factor other than 1/255"),
    ],
)
def test_a_processor_that_our_engine_cannot_follow_is_refused(change, name, saved, words):
    with pytest.raises(UserError, match=words):
        load_family(str(change(name, saved)))

"""Pictures of any size become the patches of the library's own image processor (its PIL classes), to the bit."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image as PillowImage
from publish import publish
from samples import picture
from transformers import AutoImageProcessor

from baselines.models.load import FAMILIES, load_family
from vlgym.errors import UserError

BUDGETS = (None, 9)
SIDES = st.integers(1, 400)


@pytest.fixture(scope="module")
def published(model_folder, tmp_path_factory):
    """Per family a folder with the settings that are published."""
    return {name: publish(model_folder(name), tmp_path_factory.mktemp("pixels") / name, name) for name in FAMILIES}


@pytest.fixture(scope="module")
def pairs(published):
    """(family, library's image processor) by name and budget."""
    found = {}
    for name, folder in published.items():
        for budget in BUDGETS:
            family = load_family(str(folder), image_tokens=budget)
            size = (
                {}
                if family.pixels is None
                else dict(zip(("shortest_edge", "longest_edge"), family.pixels, strict=True))
            )
            options = {"size": size} if size else {}
            found[name, budget] = family, AutoImageProcessor.from_pretrained(folder, backend="pil", **options)
    return found


def compare(family, processor, image: np.ndarray) -> None:
    expected = processor(images=[PillowImage.fromarray(image)], return_tensors="pt")
    prepared = family.prepare_image(image)
    assert list(prepared.grid) == expected["image_grid_thw"][0].tolist()
    assert prepared.tokens == prepared.grid[1] * prepared.grid[2] // 4
    assert torch.equal(family.patchify(prepared), expected["pixel_values"])


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", list(FAMILIES))
@example(height=300, width=300, seed=0)
@example(height=1, width=1, seed=0)
@example(height=2, width=400, seed=0)
@given(height=SIDES, width=SIDES, seed=st.integers(0, 9))
def test_size_grid_and_patches_are_those_of_the_librarys_image_processor(pairs, name, budget, height, width, seed):
    if max(height, width) > 200 * min(height, width):
        return  # the library refuses pictures this long
    compare(*pairs[name, budget], picture(seed, (height, width)))


@pytest.mark.parametrize(("name", "resample"), [("qwen2_5_vl", 2), ("qwen2_vl", 0)])
def test_mean_deviation_and_resampling_are_those_that_are_saved_with_the_model(model_folder, tmp_path, name, resample):
    folder = publish(model_folder(name), tmp_path / "model", name)
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    own = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "resample": resample}
    assert all(settings.get(setting) != value for setting, value in own.items())
    (folder / "preprocessor_config.json").write_text(json.dumps(settings | own))
    compare(load_family(str(folder)), AutoImageProcessor.from_pretrained(folder, backend="pil"), picture(1, (97, 130)))


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
def test_old_and_new_names_of_a_processors_sizes_are_read_as_the_library_reads_them(
    model_folder, tmp_path, saved, expected
):
    folder = publish(model_folder("qwen2_5_vl"), tmp_path / "model", "qwen2_5_vl")
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps({**_without_sizes(settings), **saved}))
    family = load_family(str(folder))
    assert family.pixels == expected
    if "min_pixels" not in saved.get("size", {}):  # these names within `size` only earlier releases read
        size = AutoImageProcessor.from_pretrained(folder, backend="pil").size
        assert (size["shortest_edge"], size["longest_edge"]) == expected


def _without_sizes(settings: dict) -> dict:
    return {name: value for name, value in settings.items() if name not in ("size", "min_pixels", "max_pixels")}


@pytest.mark.parametrize(
    ("name", "saved", "words"),
    [
        ("qwen2_5_vl", {"patch_size": 16}, "its patch_size is 16, the model's 14"),
        ("qwen2_5_vl", {"do_rescale": False}, "asks for do_rescale = false, which is not supported"),
        ("qwen3_vl", {"rescale_factor": 1.0}, "rescale_factor other than 1/255"),
    ],
)
def test_a_processor_that_our_engine_cannot_follow_is_refused(model_folder, tmp_path, name, saved, words):
    folder = publish(model_folder(name), tmp_path / "model", name)
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps(settings | saved))
    with pytest.raises(UserError, match=words):
        load_family(str(folder))

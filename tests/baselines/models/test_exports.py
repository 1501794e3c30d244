"""An exported folder shows the library what the model was trained on: same pixels, ids and logits."""

import json

import pytest
import torch
from publish import publish
from safetensors.torch import load_file
from samples import ANSWER, ask_library, messages, picture
from tiny_families import EACH
from torch.testing import assert_close
from transformers import AutoConfig, AutoModelForImageTextToText

from baselines.engine.engine import Engine
from baselines.models.library import load_processor
from baselines.models.load import load_family
from baselines.models.lora import LoraOptions, adapters, add_adapters, export_merged
from vlgym.errors import UserError


def chat(size) -> list[dict]:
    return [*messages(picture(1, size), "A line\n"), ANSWER, *messages(picture(2, size), "And now?")]


@pytest.fixture(params=["tiny", *EACH])
def family(request, model_folder, tmp_path):
    """The tiny default, and one of each family with an image budget where it can have one."""
    if request.param == "tiny":
        return load_family("tiny")
    folder = publish(model_folder(request.param), tmp_path / "published", request.param)
    return load_family(str(folder), image_tokens=40)


@torch.no_grad()
def test_the_librarys_processor_gives_the_same_pixels_ids_and_logits(family, tmp_path):
    add_adapters(family, LoraOptions(rank=2), seed=0)
    for name, factor in adapters(family).items():
        factor.weight.normal_(0, 0.05, generator=torch.Generator().manual_seed(len(name)))
    engine = Engine(family, max_new_tokens=4)
    folder = export_merged(family, tmp_path / "out")
    processor = load_processor(str(folder), {}, AutoConfig.from_pretrained(folder))
    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    for size in ((224, 224), (300, 420)):
        prompt = family.encode(chat(size))
        inputs = ask_library(processor, chat(size))
        assert inputs["input_ids"][0].tolist() == prompt.ids.tolist()
        pixels = torch.cat([family.patchify(image) for image in prompt.images])
        assert inputs["image_grid_thw"].tolist() == [list(image.grid) for image in prompt.images]
        assert torch.equal(inputs["pixel_values"], pixels)
        ours = family.logits(engine.last_hidden([prompt]))[0]
        assert_close(ours, model(**inputs).logits[0, -1], atol=2e-4, rtol=1e-4)


@pytest.fixture
def folder(model_folder, tmp_path):
    return publish(model_folder("qwen2_5_vl"), tmp_path / "published", "qwen2_5_vl")


def test_files_that_came_with_the_model_stay_as_they_are(folder):
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    settings |= {"min_pixels": 784, "max_pixels": 28 * 28 * 50, "note": "kept"}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    (folder / "video_preprocessor_config.json").write_text(json.dumps({"video_processor_type": "X", "fps": 2}))
    files = load_family(str(folder)).processor_files()
    assert settings.items() <= files["preprocessor_config.json"].items()
    assert files["video_preprocessor_config.json"]["fps"] == 2
    bound = load_family(str(folder), image_tokens=9).processor_files()["preprocessor_config.json"]
    assert bound["size"] == {"shortest_edge": 784, "longest_edge": 28 * 28 * 9}
    assert not {"min_pixels", "max_pixels"} & bound.keys()  # they would win over it
    assert bound["note"] == "kept"


def test_settings_in_the_newer_single_file_are_exported_as_files(folder, tmp_path):
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").unlink()
    nested = {"processor_class": "Qwen2_5_VLProcessor", "image_processor": settings | {"max_pixels": 28 * 28 * 50}}
    (folder / "processor_config.json").write_text(json.dumps(nested))
    out = export_merged(load_family(str(folder), image_tokens=9), tmp_path / "out")
    assert "image_processor" not in json.loads((out / "processor_config.json").read_text())
    assert load_family(str(out)).pixels == (56 * 56, 28 * 28 * 9)


def test_an_export_is_a_plain_checkpoint(tmp_path):
    family = load_family("tiny")
    family.model.save_pretrained(tmp_path / "before")
    add_adapters(family, LoraOptions(rank=4), seed=0)
    folders = (tmp_path / "before", export_merged(family, tmp_path / "model"))
    one, other = (
        {name: (x.shape, x.dtype) for name, x in load_file(each / "model.safetensors").items()} for each in folders
    )
    assert one == other
    config, new_config = (json.loads((each / "config.json").read_text()) for each in folders)
    assert config == new_config
    names = {path.name for path in folders[1].iterdir()}
    assert {"generation_config.json", "chat_template.jinja"} <= names
    assert "adapter_config.json" not in names
    assert list(tmp_path.glob(".*")) == []


def test_an_export_does_not_delete_a_folder_that_holds_something_else(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="choose a new or empty folder"):
        export_merged(load_family("tiny"), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"

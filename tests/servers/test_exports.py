"""`AutoProcessor` loads what a learner has exported, and shows it as it was trained."""

import pytest

from vlgym.types import Message


@pytest.mark.parametrize("name", ["tiny", "qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
def test_auto_processor_reads_an_exported_folder_and_gives_its_ids_and_grid(name, tmp_path) -> None:
    from publish import publish
    from samples import ask_library, messages, picture
    from tiny_families import build
    from transformers import AutoImageProcessor, AutoProcessor

    from baselines.models.load import load_family
    from baselines.models.lora import export_merged

    source = "tiny"
    if name != "tiny":
        for part in build(name):
            part.save_pretrained(tmp_path / "raw")
        source = str(publish(tmp_path / "raw", tmp_path / "published", name))
    family = load_family(source, image_tokens=None if name == "tiny" else 40)
    folder = export_merged(family, tmp_path / "out")
    chat: list[Message] = messages(picture(1, (300, 224)), "Which way?\n")
    prompt = family.encode(chat)
    processor = AutoProcessor.from_pretrained(folder)
    for backend in ("torchvision", "pil"):  # they round the resampling differently
        processor.image_processor = AutoImageProcessor.from_pretrained(folder, backend=backend)
        out = ask_library(processor, chat)
        assert out["input_ids"][0].tolist() == prompt.ids.tolist()
        assert out["image_grid_thw"][0].tolist() == list(prompt.images[0].grid)
        levels = (out["pixel_values"] - family.patchify(prompt.images[0])).abs().max() * max(family.std) * 255
        assert levels <= (0 if backend == "pil" else 1.1)

"""The processor's files next to a saved model, so that the library and servers show it what it was trained on.

They are those that came with the model, with the image sizes in force; for a model that came without, such as the tiny
default, they are made. The chat template is the tokenizer's, which saves it itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .family import Family
from .gemma import Gemma3
from .library import LibraryFamily
from .processor import IMAGE_SETTINGS, PROCESSOR_SETTINGS, VIDEO_SETTINGS
from .qwen import Qwen3VL, QwenVL, TinyQwen2VL

OWN_FILES = ("image_processor", "video_processor", "chat_template")
"""Parts of the newer single file that are written as separate files, which older releases read, too."""


def processor_files(family: Family) -> dict[str, Any]:
    """Name and JSON data of each file."""
    saved = family.processor
    if isinstance(family, LibraryFamily):
        found = {IMAGE_SETTINGS: saved.images, PROCESSOR_SETTINGS: saved.own, VIDEO_SETTINGS: saved.videos}
        return {name: dict(data) for name, data in found.items() if data}
    parts = {name: value for name, value in saved.own.items() if name not in OWN_FILES}
    images = _describe_images(family)
    kind = {"processor_class": _processor_class(family)}
    files = {IMAGE_SETTINGS: kind | images, PROCESSOR_SETTINGS: kind | parts}
    if isinstance(family, Gemma3):
        files[PROCESSOR_SETTINGS] = {"image_seq_length": family.tokens} | files[PROCESSOR_SETTINGS]
    else:
        files[VIDEO_SETTINGS] = kind | (dict(saved.videos) or _describe_videos(family, images))
    return files


def _processor_class(family: Family) -> str:
    return {"qwen2_vl": "Qwen2VLProcessor", "qwen2_5_vl": "Qwen2_5_VLProcessor", "qwen3_vl": "Qwen3VLProcessor"}.get(
        family.model.config.model_type, "Gemma3Processor"
    )


def _describe_images(family: Family) -> dict[str, Any]:
    """The image processor's settings as they are in force."""
    saved = dict(family.processor.images)
    new = saved or {
        "do_convert_rgb": True, "do_resize": True, "do_rescale": True, "do_normalize": True, "rescale_factor": 1 / 255,
        "image_mean": list(family.mean), "image_std": list(family.std), "resample": int(family.resample),
    }  # fmt: skip
    if not isinstance(family, QwenVL):
        size = {"height": family.side, "width": family.side} if isinstance(family, Gemma3) else {}
        return {"image_processor_type": "Gemma3ImageProcessor", "size": size} | new
    patches = {"patch_size": family.patch, "merge_size": family.merge, "temporal_patch_size": family.frames}
    new = {"image_processor_type": "Qwen2VLImageProcessor"} | patches | new
    if isinstance(family, TinyQwen2VL):
        # One pixel more than the budget, or the library's rounding takes a row away where the sides come out even.
        least, most = family.unit**2, family.image_tokens * family.unit**2 + 1
    elif saved and family.pixels == family.processor.pixels(family.published_pixels):
        return new  # as it came
    else:
        assert family.pixels is not None
        least, most = family.pixels
    new = {name: value for name, value in new.items() if name not in ("min_pixels", "max_pixels")}
    return new | {"size": {"shortest_edge": least, "longest_edge": most}}


def _describe_videos(family: Family, images: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a processor needs to load; our engine shows no videos."""
    kind = "Qwen3VLVideoProcessor" if isinstance(family, Qwen3VL) else "Qwen2VLVideoProcessor"
    names = ("patch_size", "merge_size", "temporal_patch_size", "image_mean", "image_std")
    return {"video_processor_type": kind} | {name: images[name] for name in names if name in images}

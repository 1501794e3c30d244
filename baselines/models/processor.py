"""Settings of a model's own processor: sizes and scales of images, and the chat template. Read as data, never run.

The library's processor classes are not built here: those of Qwen need torchvision, because they also read videos.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vlgym.errors import UserError

IMAGE_SETTINGS, VIDEO_SETTINGS = "preprocessor_config.json", "video_preprocessor_config.json"
PROCESSOR_SETTINGS = "processor_config.json"
INDEX = "model.safetensors.index.json"
SETTINGS = ("config.json", "tokenizer_config.json", IMAGE_SETTINGS, VIDEO_SETTINGS, PROCESSOR_SETTINGS, INDEX)
LIBRARY_PIXELS = (56 * 56, 28 * 28 * 1280)  # what the library takes where a saved Qwen processor does not say
CUT = ("do_resize", "do_rescale", "do_normalize")
"""Steps that every published processor takes. Here they cannot be left out."""


@dataclass(frozen=True)
class Processor:
    """The settings of a saved processor; empty where none is saved with the model.

    Attributes:
        images: the settings of its image processor, as saved.
        template: the chat template, in Jinja; None: there is none.
        own: the settings of the processor itself.
        videos: the settings of its video processor, for exports alone.
    """

    images: Mapping[str, Any]
    template: str | None = None
    own: Mapping[str, Any] = field(default_factory=dict)
    videos: Mapping[str, Any] = field(default_factory=dict)

    def pixels(self, unsaved: tuple[int, int]) -> tuple[int, int]:
        """Least and most pixels of an image of the Qwen families; `unsaved` where no processor is saved."""
        if not self.images:
            return unsaved
        size, (least, most) = self.images.get("size") or {}, LIBRARY_PIXELS
        least = size.get("shortest_edge") or size.get("min_pixels") or least
        most = size.get("longest_edge") or size.get("max_pixels") or most
        # An older name next to `size` wins, as in the library.
        return int(self.images.get("min_pixels") or least), int(self.images.get("max_pixels") or most)


def read_processor(model: str, source: Mapping[str, Any], tokenizer: Any, *, ours: bool = True) -> Processor:
    """Read the settings that are saved with a model.

    Args:
        model: a folder, or a Hub name.
        source: arguments for whatever is loaded of the model (`find_model`).
        tokenizer: its tokenizer, which may have a chat template, too. The processor's wins, as in the library.
        ours: our engine does what the settings say.

    Raises:
        UserError: they cannot be read, or ask for what our engine does not do.
    """
    from transformers import ProcessorMixin

    images = _read_images(model, source)
    lacking = [f"{step} = false" for step in CUT if images.get(step) is False]
    lacking += (
        ["a rescale_factor other than 1/255"] if abs(images.get("rescale_factor", 1 / 255) * 255 - 1) > 1e-6 else []
    )
    if lacking and ours:
        raise UserError(f"--model {model}: its {IMAGE_SETTINGS} asks for {lacking[0]}, which is not supported.")
    try:  # its settings, with its chat template, from whichever file holds it
        own = dict(ProcessorMixin.get_processor_dict(model, **source)[0])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"--model {model}: its processor's files cannot be read ({first_line(error)}).") from None
    template = own.get("chat_template") or getattr(tokenizer, "chat_template", None)
    if isinstance(template, Mapping):  # several, by name
        template = template.get("default")
    return Processor(images, template or None, own, read_settings(model, source, VIDEO_SETTINGS))


def _read_images(model: str, source: Mapping[str, Any]) -> dict[str, Any]:
    from transformers.image_processing_base import ImageProcessingMixin

    try:
        saved, _ = ImageProcessingMixin.get_image_processor_dict(model, **source)
        saved.get("image_mean")
    except (OSError, ValueError, AttributeError) as error:
        if (Path(model) / IMAGE_SETTINGS).is_file():
            raise UserError(f"--model {model}: its {IMAGE_SETTINGS} cannot be read ({first_line(error)}).") from None
        return {}
    return saved


def read_settings(model: str, source: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Read a JSON file of a model; empty where there is none that can be read.

    Raises:
        UserError: it names code to run, or weights that are no safetensors.
    """
    from transformers.utils import cached_file

    def check(part: dict[str, Any]) -> dict[str, Any]:
        kernels = [key for key, value in part.items() if key.endswith("_implementation") and "/" in str(value)]
        if "auto_map" in part or kernels:
            raise UserError(f"--model {model}: its {name} wants code of others to be run, which is refused.")
        files = [part.get("transformers_weights") or INDEX, *dict(part.get("weight_map") or {}).values()]
        if not all(file == INDEX or str(file).endswith(".safetensors") for file in files):
            raise UserError(f"--model {model}: its {name} names weights that are no safetensors. Convert them first.")
        return part

    try:
        path = cached_file(model, name, _raise_exceptions_for_missing_entries=False, **source)
        return {} if path is None else dict(json.loads(Path(path).read_bytes(), object_hook=check))
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def first_line(error: Exception) -> str:
    """The first line of a library's error, for a line of ours."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

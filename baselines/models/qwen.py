"""Qwen2-VL, Qwen2.5-VL and Qwen3-VL: patches in any aspect, multimodal rotary positions, ChatML."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vlgym.errors import UserError

from .decoder import QkNormDecoder
from .family import Family, Fit, ImageInput, Images, Piece, Spelling, Starts
from .folders import IMAGE_SETTINGS, LIBRARY_PIXELS, PROCESSOR_SETTINGS, VIDEO_SETTINGS

PROCESSORS = {
    "qwen2_vl": "Qwen2VLProcessor", "qwen2_5_vl": "Qwen2_5_VLProcessor", "qwen3_vl": "Qwen3VLProcessor",
}  # fmt: skip
OWN_FILES = ("image_processor", "video_processor", "chat_template")  # older releases have files
TINY_TOKENS = 16  # most tokens of an image of the tiny default
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)


class QwenVL(Family):
    """Qwen2-VL and Qwen2.5-VL: 14-pixel patches merged 2 x 2, multimodal rotary positions, ChatML.

    Arguments are those of `Family`. Larger images are shrunk, keeping their aspect as far as whole
    patches allow.
    """

    mean, std = CLIP_MEAN, CLIP_STD
    published_pixels: ClassVar[tuple[int, int]] = LIBRARY_PIXELS  # where no processor is saved
    videos: ClassVar[str] = "Qwen2VLVideoProcessor"
    default_system: ClassVar[str | None] = "You are a helpful assistant."

    def __init__(self, model: Any, tokenizer: Any, **options: Any) -> None:
        ids = tokenizer.convert_tokens_to_ids
        self.turn_start = ids("<|im_start|>")
        self.vision_start, self.vision_end = ids("<|vision_start|>"), ids("<|vision_end|>")
        config, vision = model.config, model.config.vision_config
        self.patch, self.merge = vision.patch_size, vision.spatial_merge_size
        self.frames, self.unit = vision.temporal_patch_size, self.patch * self.merge
        self.cut = {"patch_size": self.patch, "merge_size": self.merge, "temporal_patch_size": self.frames}

        # Published models also stop at <|endoftext|>: here a turn has one end.
        media = (config.image_token_id, config.video_token_id, self.vision_start, self.vision_end)
        super().__init__(
            model, tokenizer, turn_end="<|im_end|>", pad="<|endoftext|>", media=media,
            image_mark=media[0], **options,
        )  # fmt: skip

    def adopt(self, model: Any) -> None:
        super().adopt(model)
        embedding = model.model.visual.patch_embed

        # Its stride equals its kernel: a matrix product is several times faster on a CPU.
        def embed(patches: Tensor) -> Tensor:
            weight = embedding.proj.weight
            return F.linear(patches.to(weight.dtype), weight.flatten(1), embedding.proj.bias)

        embedding.forward = embed

    def _vision_modules(self, model: Any) -> list[nn.Module]:
        return [model.model.visual]

    def _pieces(self, spelling: Spelling, images: Images, system: str | None) -> Iterator[Piece]:
        system = self.default_system if system is None else system
        if system is not None:
            yield from (self.turn_start, f"system\n{system}", self.turn_end, "\n")
        pending = iter(images)
        for i, (kind, value) in enumerate(spelling):
            if kind == "role":
                if i > 0:
                    yield from (self.turn_end, "\n")
                yield from (self.turn_start, f"{value}\n")
            elif kind == "image":
                yield from (self.vision_start, next(pending), self.vision_end)
            else:
                yield value
        yield from (self.turn_end, "\n", self.turn_start, "assistant\n")

    def _positions(self, length: int, starts: Starts) -> tuple[Tensor, int]:
        """Text counts on in all three rows; an image spans (0, row, column) and its longer side."""
        positions = torch.empty(3, length, dtype=torch.int64)
        done, count = 0, 0
        for start, image in starts:
            # The text before the image.
            positions[:, done:start] = torch.arange(count, count + start - done)
            count += start - done

            # The image, row by row.
            rows, columns = image.grid[1] // self.merge, image.grid[2] // self.merge
            row, column = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
            done = start + image.tokens
            places = torch.stack([torch.zeros_like(row), row, column]).flatten(1)
            positions[:, start:done] = count + places
            count += max(rows, columns)
        positions[:, done:] = torch.arange(count, count + length - done)
        return positions, count + length - done

    def _size_images(self, image_tokens: int | None) -> None:
        for name, value in self.cut.items():
            if (setting := self.processor.images.get(name, value)) != value:
                raise UserError(
                    f"The image processor belongs to another model than the weights: its {name} is {setting}, the "
                    f"model's {value}. Save or download the model again."
                )
        least, most = self.processor.pixels(self.published_pixels)
        if image_tokens and image_tokens != most // self.unit**2:  # `most` may be no multiple
            most = image_tokens * self.unit**2
        self.pixels = min(least, most), most
        self.image_tokens = self.pixels[1] // self.unit**2

    def _grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of tokens, as in the library; an enlarged image may exceed the most."""
        assert self.pixels is not None
        unit, (least, most) = self.unit, self.pixels
        rows, columns = round(height / unit), round(width / unit)
        if rows * columns * unit**2 > most:
            scale = math.sqrt(height * width / most)
            rows, columns = (math.floor(side / scale / unit) for side in (height, width))
            return max(1, rows), max(1, columns)
        if rows * columns * unit**2 < least:
            scale = math.sqrt(least / (height * width))
            return math.ceil(height * scale / unit), math.ceil(width * scale / unit)
        return rows, columns

    def _fit(self, height: int, width: int) -> Fit:
        rows, columns = self._grid(height, width)
        size = (rows * self.unit, columns * self.unit)
        return size, (1, rows * self.merge, columns * self.merge), rows * columns

    def patchify(self, image: ImageInput) -> Tensor:
        """Normalised patches [patches, 3 * frames * patch * patch] float32 in merge-block order."""
        p, m = self.patch, self.merge
        _, h, w = image.grid
        x = self.normalise(image).reshape(3, h // m, m, p, w // m, m, p)
        x = x.permute(1, 4, 2, 5, 0, 3, 6)  # block row, block column, row, column, channel, y, x
        x = x.reshape(h * w, 3, 1, p, p).expand(-1, -1, self.frames, -1, -1)  # a still image
        return x.reshape(h * w, 3 * self.frames * p * p)

    def encode_images(self, images: Images) -> list[Tensor]:
        return list(self._see(images).pooler_output)

    def _see(self, images: Images) -> Any:
        pixels = torch.cat([self.patchify(image) for image in images]).to(self.device)
        grid = torch.tensor([image.grid for image in images], device=self.device)
        return self.model.model.get_image_features(pixels, grid)

    def processor_files(self) -> dict[str, Any]:
        saved, kind = self.processor, {"processor_class": PROCESSORS[self.model.config.model_type]}

        # The image processor's settings: those that were saved, or those that the engine follows.
        images: dict[str, Any] = {"image_processor_type": "Qwen2VLImageProcessor", **self.cut}
        images |= saved.images or {
            "do_convert_rgb": True, "do_resize": True, "do_rescale": True, "do_normalize": True,
            "rescale_factor": 1 / 255, "image_mean": list(self.mean), "image_std": list(self.std),
            "resample": int(self.resample),
        }  # fmt: skip
        if (bounds := self._changed_pixels()) is not None:
            images.pop("min_pixels", None)  # they would win over `size`
            images.pop("max_pixels", None)
            images["size"] = dict(zip(("shortest_edge", "longest_edge"), bounds, strict=True))

        # The library loads no processor without settings for videos; our engine shows none.
        shared = {name: images[name] for name in (*self.cut, "image_mean", "image_std") if name in images}
        videos = dict(saved.videos) or {"video_processor_type": self.videos, **shared}
        own = {name: value for name, value in saved.own.items() if name not in OWN_FILES}
        files = {IMAGE_SETTINGS: images, PROCESSOR_SETTINGS: own, VIDEO_SETTINGS: videos}
        return {name: kind | settings for name, settings in files.items()}

    def _changed_pixels(self) -> tuple[int, int] | None:
        """Least and most pixels of an image, unless they are those of the saved processor."""
        same = self.processor.images and self.pixels == self.processor.pixels(self.published_pixels)
        return None if same else self.pixels


class TinyQwen2VL(QwenVL):
    """The tiny default: no system message, and text before images, so that all environments of a
    batch share the instructions' keys and values. Images have at most `image_tokens` (default 16)
    and are never enlarged."""

    default_system = None
    images_last = True

    def _read_template(self) -> None:
        """The template that its exports bring along says what `_pieces` says."""

    def _size_images(self, image_tokens: int | None) -> None:
        self.image_tokens = TINY_TOKENS if image_tokens is None else image_tokens

    def _changed_pixels(self) -> tuple[int, int]:
        # One pixel more than the budget: the library's rounding takes a row away from even sides.
        return self.unit**2, (self.image_tokens or TINY_TOKENS) * self.unit**2 + 1

    def _grid(self, height: int, width: int) -> tuple[int, int]:
        budget = self.image_tokens or TINY_TOKENS
        rows, columns = max(1.0, height / self.unit), max(1.0, width / self.unit)
        scale = min(1.0, (budget / (rows * columns)) ** 0.5)
        best = (max(1, int(rows * scale + 1e-6)), max(1, int(columns * scale + 1e-6)))
        while best[0] * best[1] > budget:  # a very long image: the short side is already one cell
            best = (best[0] - 1, best[1]) if best[0] > best[1] else (best[0], best[1] - 1)
        return best


class Qwen3VL(QwenVL):
    """Qwen3-VL: 16-pixel patches merged 2 x 2, normalised queries and keys, features of several
    depths of the tower added to the first layers (DeepStack, Meng et al., 2024, arXiv 2406.04334).

    Its published chat template has no default system message.
    """

    decoder_class = QkNormDecoder
    mean, std = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
    published_pixels = (256 * 256, 4096 * 4096)
    videos = "Qwen3VLVideoProcessor"
    default_system = None

    def encode_images(self, images: Images) -> list[Tensor]:
        """Vision features, one [tokens, (1 + layers with deep features) * H] tensor per image."""
        output = self._see(images)
        sizes = [image.tokens for image in images]
        # Transformers 5.3 gives a layer's deep features as one tensor, 5.23 as one per image.
        deep = [x if isinstance(x, Tensor) else torch.cat(list(x)) for x in output.deepstack_features]
        return list(torch.cat([torch.cat(list(output.pooler_output)), *deep], dim=-1).split(sizes))

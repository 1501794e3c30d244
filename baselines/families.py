"""What differs between model families: chat layout, images, 3-D positions, special tokens.

One class per family; everything else in the learners is common. Supported: Qwen2-VL and Qwen2.5-VL (any Hugging Face
path or name) and `tiny` (built offline by `tiny.py`, a Qwen2-VL). A further family is one more class with the same
methods, plus its decoder if the key/value path differs, and one entry in `FAMILIES`.

Prompts are laid out by token ids, never by text: an environment whose text spells a special token gets the letters, not
the token.
"""

from __future__ import annotations

import copy
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image as PillowImage
from torch import Tensor

from vlgym.errors import UserError, nearest
from vlgym.types import Message

from .decoder import Qwen2Decoder
from .tiny import build_tiny

CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
SUPPORTED = {"qwen2_vl": "Qwen2-VL", "qwen2_5_vl": "Qwen2.5-VL"}


@dataclass(frozen=True, eq=False)
class ImageInput:
    """A resized image, ready to be cut into patches."""

    digest: bytes
    pixels: np.ndarray  # [h, w, 3] uint8; sides are multiples of the merged patch
    grid: tuple[int, int, int]  # (1, h, w) in unmerged patches
    tokens: int  # merged patches = tokens in the prompt


@dataclass(frozen=True, eq=False)
class Prompt:
    """A prompt as the model reads it. Equal prompts have equal keys."""

    ids: Tensor  # [P] int64
    positions: Tensor  # [3, P] int64
    next_position: int  # position of the first reply token, in all three dimensions
    image_slots: Tensor  # [tokens of all images] int64, indices into ids
    images: tuple[ImageInput, ...]
    key: bytes

    def __len__(self) -> int:
        return len(self.ids)


class Lru(OrderedDict[Any, Any]):
    """A dictionary that forgets its oldest entries beyond `limit`."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def put(self, key: Any, value: Any) -> Any:
        """Store and return `value`."""
        self[key] = value
        if len(self) > self.limit:
            self.popitem(last=False)
        return value


class QwenVL:
    """Qwen2-VL and Qwen2.5-VL: 14-pixel patches merged 2 x 2, multimodal rotary positions, ChatML layout.

    Args:
        model: `Qwen2VLForConditionalGeneration` or `Qwen2_5_VLForConditionalGeneration`, in eval mode.
        tokenizer: its tokenizer.
        image_tokens: most tokens per image; larger images are shrunk, keeping their aspect as far as whole patches
            allow.
        system: the system message, or None for none.
        images_last: put the images of a turn after its text instead of where the message has them, so that equal
            instructions are a common prefix.
    """

    def __init__(self, model: Any, tokenizer: Any, *, image_tokens: int, system: str | None, images_last: bool) -> None:
        if image_tokens < 1:
            raise UserError(f"image_tokens={image_tokens} must be >= 1.")
        self.tokenizer = tokenizer
        self.image_tokens, self.system, self.images_last = image_tokens, system, images_last
        self._adopt(model)
        vision = model.config.vision_config
        self.patch, self.merge, self.frames = vision.patch_size, vision.spatial_merge_size, vision.temporal_patch_size
        self.unit = self.patch * self.merge
        ids = tokenizer.convert_tokens_to_ids
        self.image_pad, self.vision_start, self.vision_end = (
            model.config.image_token_id, ids("<|vision_start|>"), ids("<|vision_end|>"),
        )  # fmt: skip
        self.turn_start, self.turn_end = ids("<|im_start|>"), ids("<|im_end|>")
        self.pad_id: int = ids("<|endoftext|>")
        # <|endoftext|>, at which published models also stop, is suppressed: a turn has one end, and the pad id is never
        # sampled.
        self.stop_ids: tuple[int, ...] = (self.turn_end,)
        special = set(tokenizer.all_special_ids) | {self.image_pad, model.config.video_token_id}
        self.suppressed: tuple[int, ...] = tuple(sorted(special - set(self.stop_ids)))
        self._texts: Lru = Lru(4096)
        self._prepared: Lru = Lru(4096)
        self._prompts: Lru = Lru(4096)

    def _adopt(self, model: Any) -> None:
        self.model = model
        self.language_model: Any = model.model.language_model
        self.decoder = Qwen2Decoder(self.language_model)
        _use_linear_patch_embedding(model.model.visual.patch_embed)

    def frozen_copy(self) -> Family:
        """A copy whose language model no longer changes: the reference of the KL penalty.

        The vision tower is shared, so it must be frozen.
        """
        twin = copy.copy(self)
        model = copy.deepcopy(self.model).requires_grad_(False)
        model.model.visual = self.model.model.visual
        twin._adopt(model)
        return twin

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.language_model.embed_tokens.weight.device

    # ---- text ------------------------------------------------------------------------------------------------------

    def encode_text(self, text: str) -> list[int]:
        """Token ids of plain text; special tokens spelt in it stay letters."""
        found = self._texts.get(text)
        if found is None:
            found = self._texts.put(
                text, self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
            )
        return list(found)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of a reply's ids, without special tokens."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def encode_reply(self, text: str) -> list[int]:
        """Ids of a reply as a policy would have sampled it: its text and the end-of-turn token."""
        return [*self.encode_text(text), self.turn_end]

    # ---- prompts ---------------------------------------------------------------------------------------------------

    def encode(self, messages: Sequence[Message]) -> Prompt:
        """Lay out neutral chat messages, ending where the reply begins.

        Equal messages give the same object while it is remembered.
        """
        images: list[ImageInput] = []
        spelling: list[tuple[str, Any]] = []
        for message in messages:
            parts = list(message["content"])
            if self.images_last:
                parts.sort(key=lambda part: part["type"] == "image")  # stable: keeps the order within each kind
            spelling.append(("role", message["role"]))
            for part in parts:
                if part["type"] == "image":
                    images.append(self.prepare_image(part["image"]))
                    spelling.append(("image", images[-1].digest))
                else:
                    spelling.append(("text", part["text"]))
        key = tuple(spelling)
        known = self._prompts.get(key)
        return known if known is not None else self._prompts.put(key, self._lay_out(spelling, images))

    def _lay_out(self, spelling: Sequence[tuple[str, Any]], images: Sequence[ImageInput]) -> Prompt:
        newline = self.encode_text("\n")
        ids: list[int] = []
        if self.system is not None:
            ids += [self.turn_start, *self.encode_text(f"system\n{self.system}"), self.turn_end, *newline]
        pending = iter(images)
        grids: list[tuple[int, ImageInput]] = []  # (index of the image's first token, image)
        for i, (kind, value) in enumerate(spelling):
            if kind == "role":
                ids += [] if i == 0 else [self.turn_end, *newline]
                ids += [self.turn_start, *self.encode_text(f"{value}\n")]
            elif kind == "image":
                image = next(pending)
                ids.append(self.vision_start)
                grids.append((len(ids), image))
                ids += [self.image_pad] * image.tokens + [self.vision_end]
            else:
                ids += self.encode_text(value)
        ids += [self.turn_end, *newline, self.turn_start, *self.encode_text("assistant\n")]
        positions, next_position = self._positions(len(ids), grids)
        slots = [torch.arange(start, start + image.tokens) for start, image in grids]
        array = np.asarray(ids, dtype=np.int64)
        key = hashlib.sha256(array.tobytes() + b"".join(image.digest for image in images)).digest()
        return Prompt(
            torch.from_numpy(array), positions, next_position,
            torch.cat(slots) if slots else torch.zeros(0, dtype=torch.int64), tuple(images), key,
        )  # fmt: skip

    def _positions(self, length: int, grids: Sequence[tuple[int, ImageInput]]) -> tuple[Tensor, int]:
        """Multimodal rotary positions [3, length].

        Text counts on in all three; an image spans (0, row, column) and then the count jumps over its longer side.
        """
        positions = torch.empty(3, length, dtype=torch.int64)
        done, count = 0, 0
        for start, image in grids:
            positions[:, done:start] = torch.arange(count, count + start - done)
            count += start - done
            rows, columns = image.grid[1] // self.merge, image.grid[2] // self.merge
            row, column = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
            done = start + image.tokens
            positions[:, start:done] = count + torch.stack(
                [torch.zeros(rows * columns, dtype=torch.int64), row.flatten(), column.flatten()]
            )
            count += max(rows, columns)
        positions[:, done:] = torch.arange(count, count + length - done)
        return positions, count + length - done

    # ---- images ----------------------------------------------------------------------------------------------------

    def prepare_image(self, image: np.ndarray) -> ImageInput:
        """Shrink an image `[H, W, 3] uint8` to whole merged patches within the budget. Remembered by content."""
        digest = (
            hashlib.sha256(np.ascontiguousarray(image).data).digest()
            + np.asarray(image.shape, dtype=np.int32).tobytes()
        )
        known = self._prepared.get(digest)
        if known is not None:
            return known
        rows, columns = fit_grid(image.shape[0], image.shape[1], self.unit, self.image_tokens)
        size = (columns * self.unit, rows * self.unit)
        if (image.shape[1], image.shape[0]) != size:
            image = np.asarray(PillowImage.fromarray(image).resize(size, PillowImage.Resampling.BICUBIC))
        grid = (1, rows * self.merge, columns * self.merge)
        return self._prepared.put(digest, ImageInput(digest, np.array(image), grid, rows * columns))

    def patchify(self, image: ImageInput) -> Tensor:
        """Normalised patches [patches, 3 * frames * patch * patch] float32 in merge-block order.

        A still image is repeated over the frames.
        """
        p, m = self.patch, self.merge
        _, h, w = image.grid
        x = torch.from_numpy(image.pixels.astype(np.float32) / 255.0)
        x = ((x - torch.tensor(CLIP_MEAN)) / torch.tensor(CLIP_STD)).permute(2, 0, 1)
        x = x.reshape(3, h // m, m, p, w // m, m, p).permute(
            1, 4, 2, 5, 0, 3, 6
        )  # block row, block column, row, column, channel, y, x
        x = x.reshape(h * w, 3, 1, p, p).expand(-1, -1, self.frames, -1, -1)
        return x.reshape(h * w, 3 * self.frames * p * p)

    def encode_images(self, images: Sequence[ImageInput]) -> list[Tensor]:
        """Vision features, one [tokens, H] tensor per image; differentiable unless the caller says otherwise."""
        pixels = torch.cat([self.patchify(image) for image in images]).to(self.device)
        grid = torch.tensor([image.grid for image in images], device=self.device)
        return list(self.model.model.get_image_features(pixels, grid).pooler_output)


def _use_linear_patch_embedding(module: Any) -> None:
    """Compute the patch embedding as the matrix product that it is (its stride equals its kernel).

    The 3-D convolution is several times slower on a CPU.
    """

    def forward(patches: Tensor) -> Tensor:
        weight = module.proj.weight
        return F.linear(patches.to(weight.dtype), weight.flatten(1), module.proj.bias)

    module.forward = forward


class TinyQwen2VL(QwenVL):
    """The tiny default.

    No system message, text before images, so that all environments of a batch share the instructions' keys and values.
    """

    def __init__(self, model: Any, tokenizer: Any, *, image_tokens: int = 16) -> None:
        super().__init__(model, tokenizer, image_tokens=image_tokens, system=None, images_last=True)


Family = QwenVL


def fit_grid(height: int, width: int, unit: int, budget: int) -> tuple[int, int]:
    """Rows and columns of `unit`-pixel cells for an image.

    At most `budget` cells, never enlarged, aspect kept as far as whole cells allow.
    """
    rows, columns = max(1.0, height / unit), max(1.0, width / unit)
    scale = min(1.0, (budget / (rows * columns)) ** 0.5)
    best = (max(1, int(rows * scale + 1e-6)), max(1, int(columns * scale + 1e-6)))
    while best[0] * best[1] > budget:  # a very long image: the short side is already one cell
        best = (best[0] - 1, best[1]) if best[0] > best[1] else (best[0], best[1] - 1)
    return best


def load_family(
    model: str, *, image_tokens: int | None = None, seed: int = 0, dtype: str = "float32", device: str = "cpu"
) -> Family:
    """Build `tiny`, or load a model of a supported family from a folder or from the Hugging Face Hub.

    Args:
        model: `tiny`, a folder, or a Hub name.
        image_tokens: most tokens per image; None: 16 for tiny, 256 for published models.
        seed: initialisation of `tiny`.
        dtype: `float32` or `bfloat16`.
        device: a torch device.

    Raises:
        UserError: no such model, a family that is not supported, or an unknown dtype.
    """
    if dtype not in ("float32", "bfloat16"):
        raise UserError(f"dtype {dtype!r} is not supported; choose float32 or bfloat16.")
    if model == "tiny":
        net, words = build_tiny(seed=seed)
        return TinyQwen2VL(net.to(getattr(torch, dtype)).to(device), words, image_tokens=image_tokens or 16)
    from transformers import AutoConfig, AutoModelForImageTextToText, AutoTokenizer

    hint = (
        "Choose tiny (built offline), a folder with a config.json, or the Hub name of a Qwen2-VL or Qwen2.5-VL model."
    )
    if Path(model).exists() and not (Path(model) / "config.json").is_file():
        raise UserError(f"--model {model}: that folder holds no config.json, so it is not a saved model. {hint}")
    try:
        config = AutoConfig.from_pretrained(model)
    except (OSError, ValueError) as error:
        first = str(error).strip().split("\n")[0]
        raise UserError(f"--model {model}: no such model ({first}).{nearest(model, ['tiny'])} {hint}") from None
    if config.model_type not in SUPPORTED:
        names = ", ".join(SUPPORTED.values())
        raise UserError(f"--model {model} is of the family {config.model_type!r}; supported: {names}. {hint}")
    try:
        loaded: Any = AutoModelForImageTextToText.from_pretrained(model, dtype=getattr(torch, dtype))
        tokenizer: Any = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise UserError(
            f"--model {model}: the model cannot be loaded ({str(error).strip().splitlines()[0]}). {hint}"
        ) from None
    net = loaded.to(device).eval()
    if getattr(config, "vlgym_tiny", None):
        return TinyQwen2VL(net, tokenizer, image_tokens=image_tokens or 16)
    system = "You are a helpful assistant."
    return QwenVL(net, tokenizer, image_tokens=image_tokens or 256, system=system, images_last=False)

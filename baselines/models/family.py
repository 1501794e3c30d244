"""Base of all model families: prompts as token ids, images by content, float32 logits.

Prompts are laid out by token ids, never by text: an environment whose text spells a special token
gets the letters, not the token. A family (`qwen.py`, `library.py`) says how it writes a
conversation, sizes and encodes images, and which decoder runs its layers.
"""

from __future__ import annotations

import copy
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image as PillowImage
from torch import Tensor, nn

from vlgym.errors import UserError
from vlgym.types import Message

from .decoder import Qwen2Decoder
from .folders import ChatTemplate, Processor


@dataclass(frozen=True, eq=False)
class ImageInput:
    """A resized image, ready for the vision tower."""

    digest: bytes
    pixels: np.ndarray  # [h, w, 3] uint8; the sides are what the family asks for
    grid: tuple[int, int, int]  # (1, h, w) in patches
    tokens: int  # tokens in the prompt


@dataclass(frozen=True, eq=False)
class Prompt:
    """A prompt as the model reads it. Equal prompts have equal keys."""

    ids: Tensor  # [P] int64
    positions: Tensor  # [3, P] int64, with equal rows where positions have one dimension
    next_position: int  # position of the first reply token, in all three dimensions
    image_slots: Tensor  # [tokens of all images] int64, indices into ids
    images: tuple[ImageInput, ...]
    key: bytes

    def __len__(self) -> int:
        return len(self.ids)


Piece = str | int | ImageInput  # a part of a prompt: text, the id of a special token, or an image
Spelling = Sequence[tuple[str, Any]]  # ("role", name), ("text", text), ("image", digest)
Images = Sequence[ImageInput]
Starts = Sequence[tuple[int, ImageInput]]  # where images begin in a prompt
Fit = tuple[tuple[int, int], tuple[int, int, int], int]  # (height, width), patch grid, tokens
Triple = tuple[float, float, float]


class Fifo(OrderedDict[Any, Any]):
    """A dictionary that forgets its oldest entries beyond `limit`."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def put(self, key: Any, value: Any) -> Any:
        """Store and return `value`."""
        self[key] = value
        while len(self) > self.limit:
            self.popitem(last=False)
        return value

    def recall(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the value of a key, made and stored where there is none."""
        return self[key] if key in self else self.put(key, make())


class Family:
    """A model, its tokenizer, and what its family needs.

    Args:
        model: the library's model for conditional generation, in eval mode.
        turn_end, pad: the token that ends a turn, and the padding token, which is never sampled.
        media: ids of placeholders that no reply may hold, the image placeholder first.
        image_mark: the token of an image in what a chat template writes; None: it takes text alone.
        image_tokens: most tokens per image; None: as many as the model's processor allows.
        system: the system message; None: what the layout has without one.
        processor: the saved settings of the model's processor.

    Attributes:
        decoder: functional view of `language_model`, the library's text model.
        rows: logits of a token.
        stop_ids: tokens that end a reply; `turn_end` ends stored replies.
        suppressed: ids that are never sampled: special tokens but `stop_ids`, and ids without text.
    """

    decoder_class: ClassVar[type[Qwen2Decoder]] = Qwen2Decoder
    resample: PillowImage.Resampling = PillowImage.Resampling.BICUBIC
    mean: Triple = (0.5, 0.5, 0.5)  # per channel, of pixels in [0, 1]
    std: Triple = (0.5, 0.5, 0.5)
    pixels: tuple[int, int] | None = None  # least and most of an image where the family has a range
    reads_pictures: ClassVar[bool] = True
    images_last: ClassVar[bool] = False  # the images of a turn stand after its text
    image_tokens: int | None  # most per image

    def __init__(
        self, model: Any, tokenizer: Any, *, turn_end: str, pad: str, media: Sequence[int],
        image_mark: int | None, image_tokens: int | None = None, system: str | None = None,
        processor: Processor | None = None,
    ) -> None:  # fmt: skip
        self.tokenizer, self.system, self.image_mark = tokenizer, system, image_mark
        self.processor = processor or Processor({})
        settings = self.processor.images
        self.mean = settings.get("image_mean") or self.mean
        self.std = settings.get("image_std") or self.std
        resample = settings.get("resample")  # 0 is the nearest pixel
        self.resample = self.resample if resample is None else PillowImage.Resampling(resample)
        if image_tokens is not None and image_tokens < 1:
            raise UserError(f"image_tokens={image_tokens} must be >= 1.")
        self._size_images(image_tokens)

        # Another model's tokenizer lacks tokens, or has ids beyond the logits.
        known, rows = tokenizer.get_vocab(), model.get_output_embeddings().weight.shape[0]
        lacking = [token for token in (turn_end, pad) if known.get(token, rows) >= rows]
        if lacking or None in media or max(*media, *known.values()) >= rows:
            raise UserError(
                "The tokenizer belongs to another model than the weights: it "
                f"{f'has no {lacking[0]!r}' if lacking else 'does not fit their vocabulary'}. "
                "Save or download the model again."
            )

        # Ids that stand for no text are never sampled.
        ids = tokenizer.convert_tokens_to_ids
        self.rows, self.image_pad = rows, media[0] if media else -1
        self.turn_end, self.pad_id = int(ids(turn_end)), int(ids(pad))
        self.stop_ids: tuple[int, ...] = (self.turn_end,)
        special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        special |= {*tokenizer.all_special_ids, *media, *range(1 + max(known.values()), rows)}
        self.suppressed: tuple[int, ...] = tuple(sorted(special - set(self.stop_ids)))

        self._texts, self._prepared, self._prompts = Fifo(4096), Fifo(4096), Fifo(4096)
        self.template = self._read_template()
        self.adopt(model)

    def _read_template(self) -> ChatTemplate | None:
        source = self.processor.template
        return None if source is None else ChatTemplate(self.tokenizer, source, self.image_mark)

    def _pieces(self, spelling: Spelling, images: Images, system: str | None) -> Iterator[Piece]:
        """A conversation of a model without a chat template, up to where the reply begins."""
        raise NotImplementedError

    def _expand(self, images: Images) -> list[list[Piece]]:
        """The pieces that stand where a chat template marks each image."""
        return [[image] for image in images]

    def _size_images(self, image_tokens: int | None) -> None:
        """Set `image_tokens`, and `pixels` where the family has a range."""
        raise NotImplementedError

    def _fit(self, height: int, width: int) -> Fit:
        raise NotImplementedError

    def encode_images(self, images: Images) -> list[Tensor]:
        """Vision features, one [tokens, H or a multiple] tensor per image (`ImageTokens.deep`)."""
        raise NotImplementedError

    def _vision_modules(self, model: Any) -> list[nn.Module]:
        raise NotImplementedError

    def processor_files(self) -> dict[str, Any]:
        """The processor's files, name -> JSON data, with the image sizes in force."""
        raise NotImplementedError

    def _positions(self, length: int, starts: Starts) -> tuple[Tensor, int]:
        """Positions [3, length] of a prompt by where its images begin, and the reply's first."""
        return torch.arange(length).expand(3, -1).contiguous(), length

    def adopt(self, model: Any) -> None:
        """Go on with other weights."""
        self.model = model
        self.language_model: Any = model.model.language_model
        self.decoder = self.decoder_class(self.language_model)

    def twin(self, shared: dict[int, Any]) -> Family:
        """A copy; the modules and tensors in `shared`, by `id`, stand for those of the model."""
        twin = copy.copy(self)
        twin.adopt(copy.deepcopy(self.model, shared))
        return twin

    def frozen_copy(self, *, share_vision: bool = True) -> Family:
        """The reference of the KL penalty; a vision tower is shared only if it is frozen."""
        modules = self._vision_modules(self.model) if share_vision else []
        twin = self.twin({id(module): module for module in modules})
        twin.model.requires_grad_(False)
        return twin

    def set_recompute(self, recompute: bool) -> None:
        """Compute activations again in the backward pass instead of keeping them."""
        self.decoder.recompute = recompute

    def vision_parameters(self) -> list[nn.Parameter]:
        """Parameters of the vision tower and of what projects its features."""
        return [p for module in self._vision_modules(self.model) for p in module.parameters()]

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.model.get_output_embeddings().weight.device

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., H] of the model's type -> [..., V] float32: bfloat16 would round by up to 1/16."""
        weight = self.model.lm_head.weight
        if weight.dtype == torch.float32:
            return F.linear(hidden, weight)
        return Float32Product.apply(hidden.flatten(0, -2), weight).unflatten(0, hidden.shape[:-1])

    def encode_text(self, text: str) -> list[int]:
        """Token ids of plain text; special tokens spelt in it stay letters."""
        plain = {"add_special_tokens": False, "split_special_tokens": True}
        return list(self._texts.recall(text, partial(self.tokenizer.encode, text, **plain)))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of a reply's ids, without special tokens."""
        plain = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        decode = partial(self.tokenizer.decode, list(ids), **plain)
        return str(self._texts.recall(tuple(ids), decode))

    def count_tokens(self, ids: Sequence[int], characters: int) -> int:
        """Return the fewest first tokens whose text has that many characters, or all."""
        low, high = 1, len(ids)  # bisection: a character may be split over tokens
        while low < high:
            middle = (low + high) // 2
            if len(self.decode(ids[:middle])) >= characters:
                high = middle
            else:
                low = middle + 1
        return low

    def encode_reply(self, text: str) -> list[int]:
        """Ids of a reply as a policy would have sampled it: its text and the end-of-turn token."""
        return [*self.encode_text(text), self.turn_end]

    def encode(self, messages: Sequence[Message]) -> Prompt:
        """Lay out neutral chat messages up to the reply; equal messages give one object."""
        # One system message, the model's own first.
        system, turns = self.system, list(messages)
        if turns and turns[0]["role"] == "system":
            texts = [part["text"] for part in turns.pop(0)["content"]]
            system = "\n\n".join([*([system] if system else []), *texts])

        images: list[ImageInput] = []
        spelling: list[tuple[str, Any]] = []
        for message in turns:
            parts = list(message["content"])
            if self.images_last:
                parts.sort(key=lambda part: part["type"] == "image")  # stable within each kind
            spelling.append(("role", message["role"]))
            for part in parts:
                if part["type"] == "image":
                    images.append(self.prepare_image(part["image"]))
                    spelling.append(("image", images[-1].digest))
                else:
                    spelling.append(("text", part["text"]))

        # Whoever asks again gets the same object, by which caches know it.
        lay_out = partial(self._lay_out, spelling, images, system)
        return self._prompts.recall((system, *spelling), lay_out)

    def _lay_out(self, spelling: Spelling, images: Images, system: str | None) -> Prompt:
        ids: list[int] = []
        lay_out = self._pieces if self.template is None else self._by_template
        pieces = lay_out(spelling, images, system)
        for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
            if is_text:  # neighbours are encoded together, as in the library: some tokens span them
                ids += self.encode_text("".join(map(str, group)))
                continue
            for piece in group:
                if isinstance(piece, ImageInput):
                    ids += [self.image_pad] * piece.tokens
                else:
                    ids.append(int(piece))
        return self.place(torch.tensor(ids), images)

    def _by_template(self, spelling: Spelling, images: Images, system: str | None) -> Iterator[Piece]:
        assert self.template is not None
        pending = iter(self._expand(images))
        for piece in self.template.lay_out(spelling, system):
            yield from next(pending) if piece == self.image_mark else (piece,)

    def place(self, ids: Tensor, images: Images) -> Prompt:
        """The prompt of these ids [P] int64, whose image tokens are those of the images."""
        sizes = [image.tokens for image in images]
        slots = (ids == self.image_pad).nonzero().flatten()[: sum(sizes)]
        parts = zip(slots.split(sizes), images, strict=True)
        starts = [(int(part[0]), image) for part, image in parts if len(part)]
        positions, next_position = self._positions(len(ids), starts)
        digests = b"".join(image.digest for image in images)
        key = hashlib.sha256(ids.numpy().tobytes() + digests).digest()
        return Prompt(ids, positions, next_position, slots, tuple(images), key)

    def check_pictures(self, shown: bool = True) -> None:
        """Raise `UserError` where prompts show pictures to a model that reads words alone."""
        if shown and not self.reads_pictures:
            raise UserError(
                f"A {self.model.config.model_type} model reads words alone, and the prompts show pictures. Play in "
                "words (modality=text), or choose a model that chats about images."
            )

    def prepare_image(self, image: np.ndarray) -> ImageInput:
        """Resize an image `[H, W, 3] uint8` as the family asks for. Remembered by content."""
        self.check_pictures()
        digest = hashlib.sha256(np.ascontiguousarray(image).data).digest()
        digest += np.array(image.shape, np.int32).tobytes()
        return self._prepared.recall(digest, partial(self._resize, image, digest))

    def _resize(self, image: np.ndarray, digest: bytes) -> ImageInput:
        (height, width), grid, tokens = self._fit(image.shape[0], image.shape[1])
        if image.shape[:2] != (height, width):
            image = np.asarray(PillowImage.fromarray(image).resize((width, height), self.resample))
        return ImageInput(digest, np.array(image), grid, tokens)

    def describe_images(self) -> dict[str, Any]:
        """Return the sizes of images, for a run's record."""
        size = {} if self.pixels is None else {"image_pixels": list(self.pixels)}
        return {"image_tokens": self.image_tokens, **size}

    def normalise(self, image: ImageInput) -> Tensor:
        """Pixels as the vision tower was trained on them, [3, h, w] float32."""
        x = torch.from_numpy(image.pixels).to(self.device)  # bytes travel; the device computes
        mean, std = (torch.tensor(values, device=x.device) for values in (self.mean, self.std))
        return ((x / 255.0 - mean) / std).permute(2, 0, 1)


class Float32Product(torch.autograd.Function):
    """`x @ weight.T` of 16-bit numbers, [M, H] and [V, H] -> [M, V] float32, on CUDA not copied.
    Gradients have the weights' type, as those of `F.linear`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        if x.is_cuda:
            return torch.mm(x, weight.t(), out_dtype=torch.float32)
        return F.linear(x.float(), weight.float())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors  # read once: a second time is an error where logits are recomputed
        gradient = gradients[0].to(weight.dtype)
        needs_x, needs_weight = ctx.needs_input_grad
        return gradient @ weight if needs_x else None, gradient.t() @ x if needs_weight else None

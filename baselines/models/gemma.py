"""Gemma3 with images: squares of one size, image tokens that see each other both ways, local and global layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from PIL import Image as PillowImage
from torch import Tensor, nn

from vlgym.errors import UserError

from .decoder import QkNormDecoder, Rotary
from .family import Family, ImageInput, Piece
from .processor import Processor


class Gemma3Decoder(QkNormDecoder):
    """Layers of Gemma3: weights of norms counted from 1, norms before and after each half of a layer, and layers of two
    kinds, each with its rotation angles and windows (Gemma 3 report, arXiv 2503.19786, section 2).
    """

    sees_whole_images = True

    def __init__(self, language_model: Any) -> None:
        super().__init__(language_model)
        config = language_model.config
        self.layer_types = sorted(set(config.layer_types))
        self.kinds = [self.layer_types.index(kind) for kind in config.layer_types]
        self.windows = [config.sliding_window if kind == "sliding_attention" else None for kind in config.layer_types]

    def rotary(self, positions: Tensor) -> Rotary:
        """Angles of positions [3, B, T] integers, of which the first row counts."""
        like, at = self.model.embed_tokens.weight, positions[0]
        return Rotary([self._signed(*self.model.rotary_emb(like, at, kind)) for kind in self.layer_types], at)

    def norm(self, norm: Any, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), (x.shape[-1],), 1.0 + norm.weight.float(), norm.eps).type_as(x)

    def _residuals(self, layer: Any, x: Tensor, attended: Tensor, mlp: Callable[[Tensor], Tensor]) -> Tensor:
        x = x + self.norm(layer.post_attention_layernorm, layer.self_attn.o_proj(attended))
        y = mlp(self.norm(layer.pre_feedforward_layernorm, x))
        return x + self.norm(layer.post_feedforward_layernorm, y)


class Gemma3(Family):
    """Gemma3 (4B and larger, which see images).

    An image is resized to the tower's square and always takes the same number of tokens (published models: 896 pixels,
    256 tokens).

    Args:
        model: `Gemma3ForConditionalGeneration`, in eval mode.
        tokenizer: its tokenizer.
        image_tokens: most tokens per image; less than an image takes is refused.
        system: a system message, put before the first user turn's text as in the published chat template; or None.
        processor, images_last: see `Family`.

    Raises:
        UserError: the budget is below what an image takes, or the configuration asks for what no published model has.
    """

    decoder_class = Gemma3Decoder
    resample = PillowImage.Resampling.BILINEAR

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        image_tokens: int | None = None,
        system: str | None = None,
        processor: Processor | None = None,
        images_last: bool = False,
    ) -> None:
        config, text, ids = model.config, model.config.text_config, tokenizer.convert_tokens_to_ids
        self.tokens, self.side = config.mm_tokens_per_image, config.vision_config.image_size
        self.patch = config.vision_config.patch_size
        # The library's own class ignores the two caps (transformers 5.3 to 5.23), so there is nothing to agree with.
        for option in ("attn_logit_softcapping", "final_logit_softcapping", "use_bidirectional_attention"):
            if getattr(text, option, None):
                raise UserError(f"Gemma3 models with {option} are not supported; published ones do not set it.")
        self.turn_start, self.begin = ids("<start_of_turn>"), ids("<bos>")
        self.image_start, self.image_end = config.boi_token_index, config.eoi_token_index
        super().__init__(
            model, tokenizer, image_tokens=image_tokens, system=system, processor=processor, images_last=images_last,
            turn_end="<end_of_turn>", stops=("<eos>",), pad="<pad>",
            media=(config.image_token_id, self.image_start, self.image_end),
        )  # fmt: skip

    def _vision_modules(self, model: Any) -> list[nn.Module]:
        return [model.model.vision_tower, model.model.multi_modal_projector]

    def _pieces(
        self, spelling: Sequence[tuple[str, Any]], images: Iterable[ImageInput], system: str | None
    ) -> Iterator[Piece]:
        yield self.begin
        pending = iter(images)
        for i, (kind, value) in enumerate(spelling):
            if kind == "role":
                if i > 0:
                    yield from (self.turn_end, "\n")
                yield from (self.turn_start, "model\n" if value == "assistant" else f"{value}\n")
                if system is not None:
                    yield f"{system}\n\n"
                    system = None
            elif kind == "image":
                yield from self._picture(next(pending))
            else:
                yield value
        yield from (self.turn_end, "\n", self.turn_start, "model\n")

    @property
    def image_mark(self) -> int:
        return self.image_start

    def _picture(self, image: ImageInput) -> Sequence[Piece]:
        return ("\n\n", self.image_start, image, self.image_end, "\n\n")

    def _size_images(self, image_tokens: int | None) -> None:
        if image_tokens is not None and image_tokens < self.tokens:
            raise UserError(
                f"image_tokens={image_tokens}: a Gemma3 model always reads an image as {self.tokens} tokens. "
                "Leave --image-tokens out, or choose a Qwen model, which reads small images as few tokens."
            )
        size, own = self.processor.images.get("size"), {"height": self.side, "width": self.side}
        if size and size != own:
            raise UserError(
                f"The image processor belongs to another model than the weights: its size is {size}, the model's {own}."
                " Save or download the model again."
            )
        self.image_tokens = self.tokens

    def _fit(self, height: int, width: int) -> tuple[tuple[int, int], tuple[int, int, int], int]:
        patches = self.side // self.patch
        return (self.side, self.side), (1, patches, patches), self.tokens

    def encode_images(self, images: Sequence[ImageInput]) -> list[Tensor]:
        """Vision features, one [tokens, H] tensor per image; differentiable unless the caller says otherwise."""
        dtype = self.language_model.embed_tokens.weight.dtype
        pixels = torch.stack([self.normalise(image) for image in images]).to(self.device, dtype)
        return list(self.model.model.get_image_features(pixels).pooler_output)

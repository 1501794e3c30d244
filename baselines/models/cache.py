"""What a decoder reads and writes beside hidden states: past keys and values, angles, image tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

KV = list[tuple[Tensor, Tensor]]
"""Per layer: keys and values, each [B, kv_heads, S, head_dim]."""


@dataclass
class Segment:
    """Keys and values that come before the tokens of a forward pass.

    Attributes:
        kv: per layer; batch 1 is shared by all rows, and is then neither copied nor padded.
        bias: [B, S] float, 0 on real tokens and -inf on padding; None where there is no padding.
        positions: [B, S] int64, text positions; needed by layers with a window.
    """

    kv: KV
    bias: Tensor | None = None
    positions: Tensor | None = None

    def select(self, index: Tensor) -> Segment:
        """The segment with its rows rearranged; a shared one stays as it is."""
        if self.kv[0][0].shape[0] == 1 and self.bias is None:
            return self
        kv = [(k[index], v[index]) for k, v in self.kv]
        bias, positions = (None if x is None else x[index] for x in (self.bias, self.positions))
        return Segment(kv, bias, positions)


class Rotary(NamedTuple):
    """Rotation angles of a batch of positions.

    Attributes:
        angles: (cos, sin) per kind of layer (see `Qwen2Decoder.kinds`), each [B, T, 1, head_dim]; the sine carries the
            sign of the half rotation.
        positions: [B, T] int64, the text positions (the first dimension of 3-D ones).
    """

    angles: list[tuple[Tensor, Tensor]]
    positions: Tensor


@dataclass
class ImageTokens:
    """Where the image tokens of a batch are, and what they bring along beside their embeddings.

    Attributes:
        rows, columns: [M] int64, the M image tokens in the batch [B, T].
        image: [M] int64, a number per image.
        deep: features [M, H] to be added to the output of the first layers, one tensor per layer; most families have
            none.
    """

    rows: Tensor
    columns: Tensor
    image: Tensor
    deep: tuple[Tensor, ...] = ()


@dataclass
class DecodeState:
    """The static cache of one batch while it is being decoded. Slots are filled from the left; prompts are left-padded.

    Attributes:
        keys: per layer [B * kv_heads, head_dim, S]; transposed, as the score product wants them.
        values: per layer [B * kv_heads, S, head_dim].
        bias: [B * kv_heads, 1, S] float, -inf on padding; None where no row is padded.
        filled: slots in use.
        rotary: per kind of layer (cos, sin) of all reply positions, each [R, B, heads + kv_heads, head_dim], queries
            already scaled.
    """

    keys: list[Tensor]
    values: list[Tensor]
    bias: Tensor | None
    filled: int
    rotary: list[tuple[Tensor, Tensor]]

    def keep(self, rows: Tensor) -> None:
        """Go on with some of the rows only, in this order."""
        heads = self.keys[0].shape[0] // self.rotary[0][0].shape[1]
        flat = (rows.unsqueeze(1) * heads + torch.arange(heads, device=rows.device)).flatten()
        self.keys = [x[flat] for x in self.keys]
        self.values = [x[flat] for x in self.values]
        self.bias = None if self.bias is None else self.bias[flat]
        self.rotary = [(cos[:, rows], sin[:, rows]) for cos, sin in self.rotary]

"""Forward pass of Qwen2-type decoders over the model's own weights, with explicit keys and values.

It computes what the library's `language_model` computes (a test compares them) without the overhead
per call, which costs a small model on a CPU more than the arithmetic does. Past keys and values are
plain tensors: several replies attend to one copy of a shared prompt, with or without gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

KV = list[tuple[Tensor, Tensor]]  # per layer: keys and values, each [B, kv_heads, S, head_dim]
Bias = tuple[Tensor, Tensor, Tensor | None]  # keys, values, and the bias of their scores


@dataclass
class Segment:
    """Keys and values that come before the tokens of a forward pass."""

    kv: KV  # batch 1 is shared by all rows, and is then neither copied nor padded
    bias: Tensor | None = None  # [B, S] float, 0 on tokens and -inf on padding

    def select(self, index: Tensor) -> Segment:
        """The segment with its rows rearranged; a shared one stays as it is."""
        if self.kv[0][0].shape[0] == 1 and self.bias is None:
            return self
        kv = [(k[index], v[index]) for k, v in self.kv]
        return Segment(kv, None if self.bias is None else self.bias[index])


Rotary = tuple[Tensor, Tensor]  # cos, sin [B, T, 1, head_dim]; the sine has a half rotation's sign


@dataclass
class ImageTokens:
    """Positions of a batch's image tokens, and their data in addition to their embeddings."""

    rows: Tensor  # [M] int64, of the M image tokens in the batch [B, T]
    columns: Tensor  # [M] int64
    deep: tuple[Tensor, ...] = ()  # features [M, H] to add to the outputs of the first layers


@dataclass
class DecodeState:
    """Cache of a batch in decoding. Slots are filled from the left; prompts are left-padded."""

    keys: list[Tensor]  # per layer [B * kv_heads, head_dim, S], transposed for the score product
    values: list[Tensor]  # per layer [B * kv_heads, S, head_dim]
    bias: Tensor  # [B * kv_heads, 1, S] float, -inf on padding and on empty slots
    filled: int  # slots in use; all from the start if the cache is static
    rotary: Rotary  # of reply positions, each [R, B, heads + kv_heads, head_dim], queries scaled
    slot: Tensor  # [1] int64, on the device: the slot that the next step fills
    t: Tensor  # [1] int64, on the device: the reply token that the next step feeds

    def keep(self, rows: Tensor) -> None:
        """Go on with some of the rows only, in this order."""
        heads = self.keys[0].shape[0] // self.rotary[0].shape[1]
        flat = (rows.unsqueeze(1) * heads + torch.arange(heads, device=rows.device)).flatten()
        self.keys, self.values = [x[flat] for x in self.keys], [x[flat] for x in self.values]
        self.bias = self.bias[flat]
        self.rotary = (self.rotary[0][:, rows], self.rotary[1][:, rows])


class Qwen2Decoder:
    """Functional view of a `Qwen2VLTextModel`, `Qwen2_5_VLTextModel` or a module with their parts."""

    def __init__(self, language_model: Any) -> None:
        self.model = language_model
        config = language_model.config
        self.layers: list[Any] = list(language_model.layers)
        attention = self.layers[0].self_attn
        self.head_dim, self.scale = int(attention.head_dim), float(attention.scaling)
        self.kv_heads, self.heads = int(config.num_key_value_heads), int(config.num_attention_heads)
        self.recompute = False  # gradient checkpointing: less memory, a third more time per update

    def rotary(self, positions: Tensor) -> Rotary:
        """Angles of 3-D positions, [3, B, T] integers."""
        cos, sin = self.model.rotary_emb(self.model.embed_tokens.weight, positions)
        half = self.head_dim // 2
        # rotate_half(x) = cat(-x2, x1) = roll(x, half) * sign: the sine has the sign.
        signed = torch.cat([-sin[..., :half], sin[..., half:]], dim=-1)
        return cos.unsqueeze(2), signed.unsqueeze(2)

    def norm(self, norm: Any, x: Tensor) -> Tensor:
        """RMS norm with a module's weights."""
        return F.rms_norm(x, (x.shape[-1],), norm.weight, norm.variance_epsilon)

    def _norm_heads(self, attention: Any, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Queries [..., heads, d] and keys [..., kv_heads, d] before their rotation."""
        return q, k

    def _residuals(self, layer: Any, x: Tensor, attended: Tensor) -> Tensor:
        """The layer after its attention: [..., H], [..., heads * d] -> [..., H]."""
        x = x + layer.self_attn.o_proj(attended)
        return x + layer.mlp(self.norm(layer.post_attention_layernorm, x))

    def forward(
        self, x: Tensor, rotary: Rotary, past: Sequence[Segment] = (), visible: Tensor | None = None,
        images: ImageTokens | None = None,
    ) -> tuple[Tensor, KV]:  # fmt: skip
        """Run all layers and the final norm. New tokens see the past, and each other causally.

        Args:
            x: [B, T, H] embeddings; rotary: angles of the T positions.
            past: keys and values before them, in order.
            visible: [B, T] bool, False on padding among the new tokens; None where there is none.
            images: the image tokens among the new tokens.

        Returns:
            (hidden [B, T, H], keys and values of the T positions); padding has finite values.
        """
        # Biases are shared by all layers.
        own = self._mask(x, past, visible)
        biases = [None if each.bias is None else each.bias[:, None, None] for each in past]

        # With `recompute` a layer's activations are made again in the backward pass.
        new: KV = []
        for i in range(len(self.layers)):
            before = [(*segment.kv[i], bias) for segment, bias in zip(past, biases, strict=True)]
            run = partial(self._layer, i, angles=rotary, past=before, own=own)
            if self.recompute and torch.is_grad_enabled():
                x, kv = checkpoint(run, x, use_reentrant=False)
            else:
                x, kv = run(x)
            new.append(kv)
            if images is not None and i < len(images.deep):
                place, deep = (images.rows, images.columns), images.deep[i].to(x.dtype)
                x = x.index_put(place, deep, accumulate=True)
        return self.norm(self.model.norm, x), new

    def _layer(
        self, i: int, x: Tensor, *, angles: Rotary, past: Sequence[Bias], own: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Layer `i` on [B, T, H], and its new keys and values; `own` is the bias of `_mask`."""
        layer, (cos, sin), half = self.layers[i], angles, self.head_dim // 2
        q, k, v = self._heads(layer.self_attn, self.norm(layer.input_layernorm, x))
        q, k = (y * cos + y.roll(half, -1) * sin for y in (q, k))

        # From here on heads come before tokens.
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        if own is None:
            options: dict[str, Any] = {"is_causal": True, "enable_gqa": self.heads > self.kv_heads}
            y = F.scaled_dot_product_attention(q, k, v, scale=self.scale, **options)
        else:
            y = self._attend(q, [*past, (k, v, own)])
        return self._residuals(layer, x, y.transpose(1, 2).flatten(2)), (k, v)

    def _mask(self, x: Tensor, past: Sequence[Segment], visible: Tensor | None) -> Tensor | None:
        """Bias among the new tokens, [1 or B, 1, T, T]; None for plain causal attention."""
        if not past and visible is None:
            return None
        t = x.shape[1]
        view = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()[None]
        if visible is not None:
            view = view & visible.unsqueeze(1)
            view.diagonal(dim1=1, dim2=2).fill_(True)  # a row of -inf alone would be NaN
        return x.new_zeros(view.shape).masked_fill(~view, float("-inf")).unsqueeze(1)

    def _heads(self, attention: Any, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [..., heads, d], keys and values [..., kv_heads, d] before rotation."""
        parts = (attention.q_proj(y), attention.k_proj(y), attention.v_proj(y))
        q, k, v = (part.view(*y.shape[:-1], -1, self.head_dim) for part in parts)
        return *self._norm_heads(attention, q, k), v

    def _attend(self, q: Tensor, segments: Sequence[Bias]) -> Tensor:
        """One softmax over several segments of keys, values and bias, [B, heads, T, d]."""
        # Rows get copies of shared keys: torch's kernel then writes no table of scores.
        b, t = q.shape[0], q.shape[2]
        keys = torch.cat([k.expand(b, -1, -1, -1) for k, _, _ in segments], dim=2)
        values = torch.cat([v.expand(b, -1, -1, -1) for _, v, _ in segments], dim=2)
        none = q.new_zeros(1, 1, 1, 1)
        biases = [(none if x is None else x).expand(b, 1, t, k.shape[2]) for k, _, x in segments]
        grouped = self.heads > self.kv_heads
        if grouped and q.is_cuda:  # no fused kernel takes a mask together with grouped heads
            times = self.heads // self.kv_heads
            keys, values = (x.repeat_interleave(times, dim=1) for x in (keys, values))
            grouped = False
        options: dict[str, Any] = {"attn_mask": torch.cat(biases, dim=-1), "enable_gqa": grouped}
        return F.scaled_dot_product_attention(q, keys, values, scale=self.scale, **options)

    def start(
        self, entries: list[tuple[Tensor, Tensor]], next_positions: Tensor, budget: int, *, static: bool = False
    ) -> DecodeState:
        """Lay prompts into a cache with room for `budget` more tokens.

        `entries` have per row the prompt's (keys, values), each [layers, kv_heads, P, head_dim];
        `next_positions` [B] int64 the positions of the first reply tokens. With `static` every step
        attends to all slots, so that all steps have the same shapes.
        """
        # Prompts are padded on the left, so that every row's next slot is the same.
        rows, longest = len(entries), max(keys.shape[2] for keys, _ in entries)
        k0, slots = entries[0][0], round_up(longest + budget)
        layers = k0.shape[0]
        keys = k0.new_zeros(layers, rows, self.kv_heads, self.head_dim, slots)
        values = k0.new_zeros(layers, rows, self.kv_heads, slots, self.head_dim)
        bias = k0.new_full((rows, self.kv_heads, 1, slots), float("-inf"))
        for row, (k, v) in enumerate(entries):
            own = slice(longest - k.shape[2], longest)
            keys[:, row, :, :, own] = k.transpose(2, 3)
            values[:, row, :, own] = v
            bias[row, :, :, own] = 0.0

        # Angles of all steps; the attention's scale is multiplied into those of the queries.
        flat = rows * self.kv_heads
        positions = next_positions + torch.arange(budget, device=next_positions.device).unsqueeze(1)
        cos, sin = self.rotary(positions.expand(3, -1, -1))
        scale = cos.new_ones(self.heads + self.kv_heads, 1)
        scale[: self.heads] = self.scale
        return DecodeState(
            [x.view(flat, self.head_dim, slots) for x in keys],
            [x.view(flat, slots, self.head_dim) for x in values],
            bias.view(flat, 1, slots), slots if static else longest, (cos * scale, sin * scale),
            next_positions.new_tensor([longest]), next_positions.new_zeros(1),
        )  # fmt: skip

    def step(self, state: DecodeState, x: Tensor) -> Tensor:
        """Feed the next reply token of every row, [B, H]; return hidden [B, H], without gradients.

        Nothing waits for the device, and a static cache keeps its addresses: CUDA graphs replay it.
        """
        # The slot of this token becomes visible.
        b, h, kvh, d = x.shape[0], self.heads, self.kv_heads, self.head_dim
        state.filled += 1
        window = slice(0, round_up(state.filled))  # a slice ends with the last slot
        state.bias.index_fill_(2, state.slot, 0.0)
        cos, sin = (table.index_select(0, state.t).squeeze(0) for table in state.rotary)

        for layer, keys, values in zip(self.layers, state.keys, state.values, strict=True):
            qkv = torch.cat(self._heads(layer.self_attn, self.norm(layer.input_layernorm, x)), dim=1)
            qk = qkv[:, : h + kvh]
            qk = qk * cos + qk.roll(d // 2, -1) * sin  # the queries' angles have the scale
            keys.index_copy_(2, state.slot, qk[:, h:].reshape(b * kvh, d, 1))
            values.index_copy_(1, state.slot, qkv[:, h + kvh :].reshape(b * kvh, 1, d))
            q = qk[:, :h].reshape(b * kvh, h // kvh, d)
            scores = torch.baddbmm(state.bias[:, :, window], q, keys[:, :, window])
            weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(values.dtype)
            x = self._residuals(layer, x, torch.bmm(weights, values[:, window]).view(b, h * d))

        # In place, so that a graph finds them.
        state.slot.add_(1)
        state.t.add_(1)
        return self.norm(self.model.norm, x)


def round_up(slots: int) -> int:
    """The next multiple of 16: other sizes end in another kernel, with other last bits."""
    return -(-slots // 16) * 16


class QkNormDecoder(Qwen2Decoder):
    """Layers that normalise the queries and keys of each head before rotation, as in Qwen3."""

    def _norm_heads(self, attention: Any, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return self.norm(attention.q_norm, q), self.norm(attention.k_norm, k)

"""A lean forward pass of Qwen2-type decoders over the model's own weights, with explicit keys and values.

It computes what the library's `language_model` computes (a test compares them) without its per-call overhead, which on
a CPU costs a small model
more than the arithmetic, and with one freedom that the library lacks: the past keys and values of a batch are plain
tensors, so many replies can attend to one copy of a shared prompt, with or without gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Parameters. Larger models are not bound by per-call overhead, and a second copy of their weights is not free.
FUSE_BELOW = 100_000_000

KV = list[tuple[Tensor, Tensor]]
"""Per layer: keys and values, each [B, kv_heads, S, head_dim]."""


@dataclass
class Segment:
    """Keys and values that come before the tokens of a forward pass.

    Attributes:
        kv: per layer; batch 1 is shared by all rows, and is then neither copied nor padded.
        bias: [B, S] float, 0 on real tokens and -inf on padding; None where there is no padding.
    """

    kv: KV
    bias: Tensor | None = None

    def select(self, index: Tensor) -> Segment:
        """The segment with its rows rearranged; a shared one stays as it is."""
        if self.kv[0][0].shape[0] == 1 and self.bias is None:
            return self
        kv = [(k[index], v[index]) for k, v in self.kv]
        return Segment(kv, None if self.bias is None else self.bias[index])


class Rotary(NamedTuple):
    """Rotation angles of a batch of positions, [B, T, 1, head_dim]; `sin` carries the sign of the half rotation."""

    cos: Tensor
    sin: Tensor


@dataclass
class DecodeState:
    """The static cache of one batch while it is being decoded. Slots are filled from the left; prompts are left-padded.

    Attributes:
        keys: per layer [B * kv_heads, head_dim, S]; transposed, as the score product wants them.
        values: per layer [B * kv_heads, S, head_dim].
        bias: [B * kv_heads, 1, S] float, -inf on padding; None where no row is padded.
        filled: slots in use.
        rotary: angles of all reply positions, [R, B, heads + kv_heads, head_dim], queries already scaled.
    """

    keys: list[Tensor]
    values: list[Tensor]
    bias: Tensor | None
    filled: int
    rotary: tuple[Tensor, Tensor]

    def keep(self, rows: Tensor) -> None:
        """Go on with some of the rows only, in this order."""
        heads = self.keys[0].shape[0] // self.rotary[0].shape[1]
        flat = (rows.unsqueeze(1) * heads + torch.arange(heads, device=rows.device)).flatten()
        self.keys = [x[flat] for x in self.keys]
        self.values = [x[flat] for x in self.values]
        self.bias = None if self.bias is None else self.bias[flat]
        self.rotary = (self.rotary[0][:, rows], self.rotary[1][:, rows])


class Qwen2Decoder:
    """Functional view of a Qwen2-type language model: the weights are read from its modules, so adapters around them
    work too.

    Args:
        language_model: a `Qwen2VLTextModel`, `Qwen2_5_VLTextModel` or any module with the same parts.
    """

    def __init__(self, language_model: Any) -> None:
        self.model = language_model
        attention = language_model.layers[0].self_attn
        self.head_dim: int = attention.head_dim
        self.kv_heads: int = attention.num_key_value_heads
        self.heads: int = attention.num_heads
        self.scale: float = attention.scaling
        self._fused: list[tuple[Tensor, Tensor, Tensor]] | None = None

    # ---- whole sequences ---------------------------------------------------------------------------------------------

    def rotary(self, positions: Tensor) -> Rotary:
        """Angles of 3-D positions, [3, B, T] integers."""
        cos, sin = self.model.rotary_emb(self.model.embed_tokens.weight, positions)
        half = self.head_dim // 2
        # rotate_half(x) = cat(-x2, x1) = roll(x, half) * sign, so the sign can live in the sine, once for all layers.
        signed = torch.cat([-sin[..., :half], sin[..., half:]], dim=-1)
        return Rotary(cos.unsqueeze(2), signed.unsqueeze(2))

    def forward(
        self, x: Tensor, rotary: Rotary, past: Sequence[Segment] = (), visible: Tensor | None = None
    ) -> tuple[Tensor, KV]:
        """Run all layers and the final norm. The new tokens see all of `past` that is not padding, and each other
        causally.

        Args:
            x: [B, T, H] embeddings.
            rotary: angles of the T positions.
            past: what comes before, in order.
            visible: [B, T] bool, False on padding among the new tokens; None where there is none.

        Returns:
            (hidden [B, T, H] after the final norm, keys and values of the T new positions). Rows of padding hold finite
            rubbish.
        """
        t, group = x.shape[1], self.heads // self.kv_heads
        own = None
        if past or visible is not None:
            own = torch.full((t, t), float("-inf"), device=x.device, dtype=x.dtype).triu(1)[None]
            if visible is not None:
                own = own.masked_fill(~visible.unsqueeze(1), float("-inf"))
                own.diagonal(dim1=1, dim2=2).zero_()  # padding sees itself: a row of -inf alone would be NaN
            own = own.repeat(1, group, 1).unsqueeze(1)
        new: KV = []
        for i, layer in enumerate(self.model.layers):
            q, k, v = self._project(layer.self_attn, _rms_norm(layer.input_layernorm, x), rotary)
            new.append((k, v))
            if own is None:
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale, enable_gqa=group > 1)
            else:
                y = self._attend(q, [(*segment.kv[i], segment.bias) for segment in past], (k, v, own))
            x = x + layer.self_attn.o_proj(y.transpose(1, 2).flatten(2))
            x = x + layer.mlp(_rms_norm(layer.post_attention_layernorm, x))
        return _rms_norm(self.model.norm, x), new

    def _project(self, attention: Any, x: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries [B, heads, T, d], rotated keys and plain values [B, kv_heads, T, d]."""
        b, t, _ = x.shape
        q = attention.q_proj(x).view(b, t, self.heads, self.head_dim)
        k = attention.k_proj(x).view(b, t, self.kv_heads, self.head_dim)
        v = attention.v_proj(x).view(b, t, self.kv_heads, self.head_dim)
        half = self.head_dim // 2
        q = q * rotary.cos + q.roll(half, -1) * rotary.sin
        k = k * rotary.cos + k.roll(half, -1) * rotary.sin
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

    def _attend(
        self, q: Tensor, past: Sequence[tuple[Tensor, Tensor, Tensor | None]], own: tuple[Tensor, Tensor, Tensor]
    ) -> Tensor:
        """One softmax over several segments of keys, [B, heads, T, d].

        The query heads of one KV head are folded into the query length (keys are never repeated), and a segment that
        all rows share is one matrix product for the whole batch (it is never copied per row).
        """
        b, h, t, d = q.shape
        kvh, rows = self.kv_heads, h // self.kv_heads * t
        q = (q * self.scale).reshape(b, kvh, rows, d)
        stacked = q.transpose(0, 1).reshape(kvh, b * rows, d)
        scores = []
        for k, _, bias in past:
            if k.shape[0] == 1:
                s = (stacked @ k[0].transpose(1, 2)).view(kvh, b, rows, -1).transpose(0, 1)
            else:
                s = q @ k.transpose(2, 3)
            scores.append(s if bias is None else s + bias[:, None, None, :])
        scores.append(q @ own[0].transpose(2, 3) + own[2])
        weights = torch.softmax(torch.cat(scores, dim=-1), dim=-1, dtype=torch.float32).to(q.dtype)
        parts = weights.split([s.shape[-1] for s in scores], dim=-1)
        out = parts[-1] @ own[1]
        for (_, v, _), w in zip(past, parts, strict=False):
            if v.shape[0] == 1:
                out = out + (w.transpose(0, 1).reshape(kvh, b * rows, -1) @ v[0]).view(kvh, b, rows, d).transpose(0, 1)
            else:
                out = out + w @ v
        return out.view(b, h, t, d)

    # ---- one token at a time -----------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read the weights anew for `step`; call it after every change of them.

        Small models get their projections concatenated.
        """
        small = sum(p.numel() for p in self.model.parameters()) < FUSE_BELOW
        parts = [
            (a.q_proj, a.k_proj, a.v_proj, m.gate_proj, m.up_proj)
            for a, m in ((x.self_attn, x.mlp) for x in self.model.layers)
        ]
        if not small or not all(type(linear) is nn.Linear for layer in parts for linear in layer):
            self._fused = None
            return
        with torch.no_grad():
            self._fused = [
                (
                    torch.cat([q.weight, k.weight, v.weight]),
                    torch.cat([q.bias, k.bias, v.bias]),
                    torch.cat([gate.weight, up.weight]),
                )
                for q, k, v, gate, up in parts
            ]

    def start(self, entries: list[tuple[Tensor, Tensor]], next_positions: Tensor, budget: int) -> DecodeState:
        """Lay prompts into a static cache with room for `budget` more tokens.

        Args:
            entries: per row, the prompt's (keys, values), each [layers, kv_heads, P, head_dim]; P may differ between
                rows.
            next_positions: [B] int64, position of each row's first reply token.
        """
        rows, longest = len(entries), max(keys.shape[2] for keys, _ in entries)
        layers, slots = entries[0][0].shape[0], longest + budget
        k0 = entries[0][0]
        keys = k0.new_zeros(layers, rows, self.kv_heads, self.head_dim, slots)
        values = k0.new_zeros(layers, rows, self.kv_heads, slots, self.head_dim)
        ragged = any(k.shape[2] != longest for k, _ in entries)
        bias = k0.new_zeros(rows, self.kv_heads, 1, slots) if ragged else None
        for row, (k, v) in enumerate(entries):
            pad = longest - k.shape[2]
            keys[:, row, :, :, pad:longest] = k.transpose(2, 3)
            values[:, row, :, pad:longest] = v
            if bias is not None:
                bias[row, :, :, :pad] = float("-inf")
        positions = next_positions + torch.arange(budget, device=k0.device).unsqueeze(1)
        angles = self.rotary(positions.expand(3, -1, -1))
        scale = k0.new_ones(self.heads + self.kv_heads, 1)
        scale[: self.heads] = self.scale
        flat = rows * self.kv_heads
        return DecodeState(
            [x.view(flat, self.head_dim, slots) for x in keys], [x.view(flat, slots, self.head_dim) for x in values],
            None if bias is None else bias.view(flat, 1, slots), longest, (angles.cos * scale, angles.sin * scale),
        )  # fmt: skip

    def step(self, state: DecodeState, x: Tensor, t: int) -> Tensor:
        """Feed reply token `t` of every row, [B, H] embeddings; return hidden [B, H] after the final norm.

        No gradients.
        """
        at = state.filled
        state.filled += 1
        b, h, kvh, d = x.shape[0], self.heads, self.kv_heads, self.head_dim
        cos, sin = state.rotary[0][t], state.rotary[1][t]
        bias = None if state.bias is None else state.bias[:, :, : at + 1]
        for i, layer in enumerate(self.model.layers):
            attention, mlp = layer.self_attn, layer.mlp
            y = _rms_norm(layer.input_layernorm, x)
            if self._fused is not None:
                qkv = F.linear(y, self._fused[i][0], self._fused[i][1])
            else:
                qkv = torch.cat([attention.q_proj(y), attention.k_proj(y), attention.v_proj(y)], dim=-1)
            qkv = qkv.view(b, h + 2 * kvh, d)
            qk = qkv[:, : h + kvh]
            qk = qk * cos + qk.roll(d // 2, -1) * sin  # the queries' angles carry the attention scale
            keys, values = state.keys[i], state.values[i]
            keys[:, :, at] = qk[:, h:].reshape(b * kvh, d)
            values[:, at] = qkv[:, h + kvh :].reshape(b * kvh, d)
            q = qk[:, :h].reshape(b * kvh, h // kvh, d)
            if bias is None:
                scores = torch.bmm(q, keys[:, :, : at + 1])
            else:
                scores = torch.baddbmm(bias, q, keys[:, :, : at + 1])
            weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(values.dtype)
            x = x + attention.o_proj(torch.bmm(weights, values[:, : at + 1]).view(b, h * d))
            y = _rms_norm(layer.post_attention_layernorm, x)
            if self._fused is not None:
                gate, up = F.linear(y, self._fused[i][2]).chunk(2, dim=-1)
                x = x + mlp.down_proj(mlp.act_fn(gate) * up)
            else:
                x = x + mlp(y)
        return _rms_norm(self.model.norm, x)


def _rms_norm(norm: Any, x: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), norm.weight, norm.variance_epsilon)

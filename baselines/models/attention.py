"""The vision towers' attention in few calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.qwen2_vl.modeling_qwen2_vl import apply_rotary_pos_emb_vision


def group_attention(tower: nn.Module) -> None:
    """Let the attention of a Qwen vision tower run all images, or windows, of one length in one call.

    The library runs one after the other, in a Python loop.
    """
    lengths = _Lengths()
    for block in tower.blocks:  # type: ignore[union-attr]
        block.attn.forward = _grouped(block.attn, lengths)  # type: ignore[union-attr]


class _Groups:
    """Which rows of a sequence make up its parts, those of one length together.

    Attributes:
        shapes: (parts, length) of each group.
        order: the rows, group after group; None where they stand in that order.
        back: the inverse of `order`.
    """

    def __init__(self, cumulative: Tensor) -> None:
        ends = cumulative.tolist()
        parts: dict[int, list[Tensor]] = {}
        for start, end in pairwise(ends):
            parts.setdefault(end - start, []).append(torch.arange(start, end))
        parts.pop(0, None)
        self.shapes = [(len(rows), length) for length, rows in parts.items()]
        self.order: Tensor | None = None
        self.back: Tensor | None = None
        if len(parts) > 1:
            order = torch.cat([rows for group in parts.values() for rows in group])
            self.order, self.back = order.to(cumulative.device), order.argsort().to(cumulative.device)


class _Lengths:
    """The groups of the newest sequences: every layer asks for those of one or two."""

    def __init__(self) -> None:
        self.known: list[tuple[Tensor, _Groups]] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> _Lengths:
        return _Lengths()

    def of(self, cumulative: Tensor) -> _Groups:
        for tensor, groups in self.known:
            if tensor is cumulative:
                return groups
        groups = _Groups(cumulative)
        self.known = [*self.known[-1:], (cumulative, groups)]
        return groups


def _grouped(module: Any, lengths: _Lengths) -> Callable[..., Tensor]:
    def forward(
        hidden_states: Tensor, cu_seqlens: Tensor, position_embeddings: Sequence[Tensor] | None = None, **kwargs: Any
    ) -> Tensor:
        assert position_embeddings is not None
        groups = lengths.of(cu_seqlens)
        attend = ALL_ATTENTION_FUNCTIONS["sdpa"]
        q, k, v = module.qkv(hidden_states).unflatten(-1, (3, module.num_heads, -1)).unbind(1)
        q, k = apply_rotary_pos_emb_vision(q, k, *position_embeddings)
        if groups.order is not None:
            q, k, v = q[groups.order], k[groups.order], v[groups.order]
        done, out = 0, []
        for parts, length in groups.shapes:
            rows = slice(done, done + parts * length)
            done = rows.stop
            qkv = [x[rows].unflatten(0, (parts, length)).transpose(1, 2) for x in (q, k, v)]
            y, _ = attend(
                module, *qkv, attention_mask=None, scaling=module.scaling, dropout=0.0, is_causal=False,
            )  # fmt: skip
            out.append(y.reshape(parts * length, -1))
        joined = out[0] if len(out) == 1 else torch.cat(out)
        return module.proj(joined if groups.back is None else joined[groups.back])

    return forward

"""How much memory a forward and backward pass takes: the pass itself on the meta device, where tensors have shapes and
no values, while every tensor that lives is counted.

Nothing is derived by hand, so a family's norms, adapters, recomputing and the chunks of the logits count as they are.
Attention is taken to be a fused kernel, which keeps queries, keys, values, the result and a number per query and head;
what kernels use for themselves while they run (cuBLAS's workspaces, for example) is not counted, nor what an allocator
loses between tensors.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..models.cache import Segment
from ..models.family import Family
from .scorer import Scorer

FEW = 4  # layers; of deeper models with adapters no more are run


class LivingBytes(TorchDispatchMode):
    """Counts the bytes of all tensors that are made within the block and still live.

    Attributes:
        now: bytes that live now; peak: the most so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._known: dict[int, Any] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        taken = {x.untyped_storage()._cdata for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        out = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._note(tensor.untyped_storage(), taken)
        return out

    def _note(self, storage: Any, taken: set[int]) -> None:
        at, size = storage._cdata, storage.nbytes()
        if at in self._known or at in taken:  # a view, or changed in place
            return

        def free(_: Any) -> None:
            del self._known[at]
            self.now -= size

        self._known[at] = weakref.ref(storage, free)
        self.now += size
        self.peak = max(self.peak, self.now)


class _Fused(torch.autograd.Function):
    """Attention without values: what a fused kernel keeps and makes."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        out = q.new_empty(*q.shape[:-1], v.shape[-1])
        normaliser = q.new_empty(q.shape[:-1], dtype=torch.float32)
        ctx.save_for_backward(q, k, v, out, normaliser, *([] if mask is None else [mask]))
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, *_ = ctx.saved_tensors
        return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), None


def _attend(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *_: Any, **options: Any) -> Any:
    """`F.scaled_dot_product_attention` on shapes."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:  # torch makes numbers of it
        attn_mask = attn_mask.to(query.dtype)
    return _Fused.apply(query, key, value, attn_mask)


def peak_bytes(work: Callable[[], Any]) -> int:
    """Most bytes that lived at once of what a piece of work makes, on the meta device or on any other."""
    with LivingBytes() as living:
        work()
    return living.peak


def update_bytes(scorer: Scorer, rows: int, prompt: int, reply: int, *, flat: bool) -> int:
    """Most bytes of one forward and backward pass over replies, gradients of the trained weights included.

    Args:
        scorer: of a family on the meta device; what `requires_grad` is trained, and its decoder may recompute.
        rows: replies; no two prompts are taken to be alike.
        prompt: tokens of each prompt; reply: of each reply.
        flat: scored by the library's forward pass (`Scorer.score_flat`), or with shared prompts (`Scorer.score`).
    """
    family = scorer.family
    layers = len(family.decoder.layers)
    counted = [layers]
    if layers > FEW and not any(p.requires_grad for p in family.decoder.layers[0].mlp.gate_proj.parameters(False)):
        counted = [FEW - 1, FEW]  # adapters: what each further layer keeps is the same

    def work() -> None:
        logp = (_score_flat if flat else _score_shared)(scorer, rows, prompt, reply)
        logp.sum().backward()

    taken = []
    for number in counted:
        try:
            with _first_layers(family, number), mock.patch.object(F, "scaled_dot_product_attention", _attend):
                taken.append(peak_bytes(work))
        finally:
            family.model.zero_grad(set_to_none=True)
    return taken[-1] + (layers - counted[-1]) * (taken[-1] - taken[0])


@contextmanager
def _first_layers(family: Family, number: int) -> Iterator[None]:
    """Leave a model the first layers alone within the block."""
    model, decoder = family.language_model, family.decoder
    modules, listed = model.layers, decoder.layers
    try:
        model.layers, decoder.layers = modules[:number], listed[:number]
        yield
    finally:
        model.layers, decoder.layers = modules, listed


def _score_flat(scorer: Scorer, rows: int, prompt: int, reply: int) -> Tensor:
    """`Scorer.score_flat` on shapes."""
    x, positions = _embed(scorer, rows, prompt + reply)
    family = scorer.family
    if family.decoder.sees_whole_images:  # the library makes masks, for which it looks at values
        seen = torch.ones(rows, 1, prompt + reply, prompt + reply, dtype=torch.bool, device=x.device)
        masks = dict.fromkeys(set(family.language_model.config.layer_types), seen)
        out = family.language_model(
            inputs_embeds=x, attention_mask=masks, position_ids=positions[0], use_cache=False
        ).last_hidden_state
    else:
        out = family.flat_hidden(x, positions, None)
    return _log_probs(scorer, out[:, prompt - 1 : prompt + reply - 1])


def _score_shared(scorer: Scorer, rows: int, prompt: int, reply: int) -> Tensor:
    """`Scorer.score` on shapes: prompts as they are where all differ, left-padded, then their replies."""
    x, positions = _embed(scorer, rows, prompt)
    visible = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    rotary = scorer.decoder.rotary(positions)
    hidden, kv = scorer.decoder.forward(x, rotary, (), visible)
    states = [hidden[:, -1:]]
    if reply > 1:
        index = torch.zeros(rows, dtype=torch.int64, device=x.device)
        bias = torch.zeros(x.shape[:2], dtype=x.dtype, device=x.device)
        past = [Segment(kv, bias, rotary.positions).select(index)]
        fed, after = _embed(scorer, rows, reply - 1)
        states.append(scorer.decoder.forward(fed, scorer.decoder.rotary(after), past)[0])
    return _log_probs(scorer, torch.cat(states, dim=1))


def _embed(scorer: Scorer, rows: int, width: int) -> tuple[Tensor, Tensor]:
    """Embeddings [rows, width, H] with a place for image features, and positions [3, rows, width]."""
    device = scorer.family.device
    tokens = torch.zeros(rows, width, dtype=torch.int64, device=device)
    x = scorer.embedding(tokens)
    features = x.detach().new_empty(rows * width, x.shape[-1])
    at = torch.zeros(2, rows * width, dtype=torch.int64, device=device)
    return x.index_put((at[0], at[1]), features), torch.zeros(3, rows, width, dtype=torch.int64, device=device)


def _log_probs(scorer: Scorer, hidden: Tensor) -> Tensor:
    flat = hidden.flatten(0, 1)
    return scorer._log_probs(flat, torch.zeros(len(flat), dtype=torch.int64, device=flat.device))

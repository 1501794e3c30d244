"""Sampling replies to prompts that are already keys and values: the plain loop, and the draw of one token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..models.decoder import Qwen2Decoder

SMALL_VOCABULARY = 8192  # tokens; up to here one running sum is quickest
CELL = 512  # tokens whose probabilities `draw` adds up first in larger ones
CHECK = 8  # steps between two questions whether replies are over; on an accelerator each question waits for the device

Over = Callable[[Sequence[int], Sequence[Sequence[int]]], list[bool]]
"""Is given numbers of rows and the beginning of each one's reply, as ids; says of each whether the reply is over though
its turn has not ended."""


class Sampled(NamedTuple):
    """Replies of a batch, right-padded to the token limit; see `sampler.Replies`.

    Attributes:
        ids: [B, limit] int64; logp: [B, limit] float32; mask: [B, limit] bool; cut: [B] bool.
    """

    ids: Tensor
    logp: Tensor
    mask: Tensor
    cut: Tensor


class EagerDecoding:
    """Samples with shapes that follow the batch: exactly as many rows and slots as are needed.

    Args:
        decoder: the language model, one token at a time.
        embedding: token embeddings.
        logits: hidden states [B, H] to float32 logits [B, V], special tokens at -inf.
        pad_id: written after the end of a reply.
    """

    def __init__(
        self, decoder: Qwen2Decoder, embedding: nn.Module, logits: Callable[[Tensor], Tensor], *, pad_id: int
    ) -> None:
        self.decoder, self.embedding, self.logits, self.pad_id = decoder, embedding, logits, pad_id

    @torch.no_grad()
    def decode(
        self,
        entries: list[tuple[Tensor, Tensor]],
        hidden: Tensor,
        next_positions: Tensor,
        uniforms: Tensor,
        stop: Tensor,
        *,
        greedy: bool = False,
        temperature: float = 1.0,
        over: Over | None = None,
    ) -> Sampled:
        """Sample one reply per prompt.

        Args:
            entries: per row, the prompt's (keys, values), each [layers, kv_heads, P, head_dim]; P may differ.
            hidden: [B, H], states of the last prompt tokens.
            next_positions: [B] int64, position of each row's first reply token.
            uniforms: [limit, B] in [0, 1), on the device; their number is the length of the longest reply.
            stop: int64, the tokens that end a reply.
            greedy: take the likeliest tokens; `uniforms` then only says how many.
            temperature: what logits are divided by before a draw; the log-probabilities returned are those at 1, that
                is, of the logits as they are given.
            over: asked every `CHECK` steps, so that a reply may be up to `CHECK - 1` tokens too long.
        """
        limit, n = uniforms.shape
        new: dict[str, Any] = {"device": hidden.device}
        state = self.decoder.start(entries, next_positions, limit)
        ids = torch.full((n, limit), self.pad_id, **new)
        logp = torch.zeros(n, limit, **new)
        mask = torch.zeros(n, limit, dtype=torch.bool, **new)
        rows = torch.arange(n, **new)  # rows still being decoded
        ended = torch.zeros(n, dtype=torch.bool, **new)  # of those rows
        for t in range(limit):
            scores = torch.log_softmax(self.logits(hidden), dim=-1)
            token = scores.argmax(-1) if greedy else draw(heat(scores, temperature), uniforms[t, rows])
            ids[rows, t] = torch.where(ended, self.pad_id, token)
            logp[rows, t] = torch.where(ended, 0.0, scores.gather(-1, token.unsqueeze(-1)).squeeze(-1))
            mask[rows, t] = ~ended
            ended = ended | torch.isin(token, stop)
            if over is not None and (t + 1) % CHECK == 0:
                ended = ended | ask(over, rows, ids[rows, : t + 1], ended)
            alive = len(rows) - int(ended.sum())
            if t + 1 == limit or alive == 0:
                break
            if alive <= len(rows) // 2:  # most rows have ended: go on with the others alone
                kept = (~ended).nonzero().squeeze(-1)
                state.keep(kept)
                rows, token, ended = rows[kept], token[kept], ended[kept]
            hidden = self.decoder.step(state, self.embedding(token), t)
        cut = torch.zeros(n, dtype=torch.bool, **new)
        cut[rows] = ~ended
        return Sampled(ids, logp, mask, cut)


def ask(over: Over, rows: Tensor, ids: Tensor, ended: Tensor) -> Tensor:
    """Ask of the rows that have not ended whether they are over: numbers [B], ids [B, t], bool [B] -> bool [B]."""
    answer = ended.clone()
    going = (~ended).nonzero().squeeze(-1)
    if len(going):
        answer[going] = torch.tensor(over(rows[going].tolist(), ids[going].tolist()), device=ended.device)
    return answer


def heat(log_probs: Tensor, temperature: float) -> Tensor:
    """Log-probabilities [..., V] at another temperature than 1."""
    return log_probs if temperature == 1.0 else torch.log_softmax(log_probs / temperature, dim=-1)


def draw(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """Sample one token per row by inverting the cumulative distribution, in float64: [B, V], [B] in [0, 1) -> [B].

    Probability 0 is never drawn. Large vocabularies are added up in cells first: a running sum over all is slow there.
    """
    size = log_probs.shape[-1]
    if size > SMALL_VOCABULARY:
        return _draw_by_cells(log_probs, uniform)
    cumulative = log_probs.double().exp().cumsum(-1)
    target = uniform.double().unsqueeze(-1) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, target, right=True).squeeze(-1).clamp(max=size - 1)


def _draw_by_cells(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """`draw`: find the cell of `CELL` tokens in the running sum over cells, then the token in that within the cell."""
    rows, size = log_probs.shape
    cells = F.pad(log_probs.exp(), (0, -size % CELL)).view(rows, -1, CELL)
    sums = cells.sum(-1, dtype=torch.float64).cumsum(-1)
    target = uniform.double().unsqueeze(-1) * sums[:, -1:]
    cell = (sums <= target).sum(-1, keepdim=True).clamp(max=sums.shape[1] - 1)
    before = F.pad(sums, (1, 0)).gather(-1, cell)
    inside = cells.gather(1, cell.unsqueeze(-1).expand(-1, -1, CELL)).squeeze(1).cumsum(-1, dtype=torch.float64)
    # The cell's sum and its last running sum can differ by rounding; the target must stay below both.
    target = torch.minimum(target - before, torch.nextafter(inside[:, -1:], torch.zeros_like(before)))
    return (cell.squeeze(-1) * CELL + (inside <= target).sum(-1)).clamp(max=size - 1)

"""Sampled replies to prompts.

Sampling is over the whole vocabulary except the special tokens, at the engine's temperature (1 unless training asks for
another).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vlgym.parsers import Parser

from ..models.family import Family, Prompt
from .eager import EagerDecoding, Over, Sampled
from .ends import find_token_end
from .prefill import CACHED_IMAGES, CACHED_PROMPTS, Prefill


@dataclass
class Replies:
    """Sampled replies of a batch, right-padded.

    Attributes:
        ids: [B, R] int64, the end-of-turn token included where the reply has one; pad id beyond.
        mask: [B, R] bool, True on sampled tokens; from the loop, never inferred from ids.
        logp: [B, R] float32, log-probability of each token when it was sampled; 0 beyond.
        hidden: [B, H] float32, state of the LAST PROMPT token: the value head's input.
        cut: [B] bool, the reply ran into the token limit before it was over.
        texts: the replies as text.
    """

    ids: Tensor
    mask: Tensor
    logp: Tensor
    hidden: Tensor
    cut: Tensor
    texts: list[str]


class Sampler(Prefill):
    """Samples replies with one model.

    Args:
        family: the model and what its family needs.
        max_new_tokens: longest reply, its end-of-turn token included.
        parsers: what reads the replies. A reply is over as soon as one of them has what it asked for (`find_end`), or
            at its end-of-turn token; with none, at that token alone.
        cached_prompts, cached_images, vision_of: as in `Prefill`.
    """

    def __init__(
        self,
        family: Family,
        *,
        max_new_tokens: int,
        parsers: Sequence[Parser] = (),
        cached_prompts: int = CACHED_PROMPTS,
        cached_images: int = CACHED_IMAGES,
        vision_of: Prefill | None = None,
    ) -> None:
        super().__init__(family, cached_prompts=cached_prompts, cached_images=cached_images, vision_of=vision_of)
        self.max_new_tokens, self.parsers = max_new_tokens, tuple(parsers)
        self.stop = torch.tensor(family.stop_ids, device=family.device)
        self.decoding = EagerDecoding(self.decoder, self.embedding, self.logits, pad_id=family.pad_id)

    def describe(self) -> dict[str, Any]:
        """Limits and numbers of the model, for a run's record."""
        family = self.family
        return {
            "max_new_tokens": self.max_new_tokens,
            **family.describe_images(),
            "dtype": str(next(family.model.parameters()).dtype).removeprefix("torch."),
            "device": str(family.device),
        }

    @torch.no_grad()
    def sample(
        self,
        prompts: Sequence[Prompt],
        generator: torch.Generator | None = None,
        *,
        greedy: bool = False,
        temperature: float = 1.0,
        draws: Tensor | None = None,
        parsers: Sequence[Sequence[Parser]] | None = None,
        share: tuple[int, int] | None = None,
    ) -> Replies:
        """Sample one reply per prompt (or take the likeliest tokens).

        Args:
            prompts: B prompts.
            generator: CPU generator; every call draws `B * max_new_tokens` numbers whatever the replies' lengths.
            greedy: argmax instead of sampling; `generator` is then not read.
            temperature: what logits are divided by once more before a draw, for evaluations; the log-probabilities are
                those of the engine's own temperature all the same.
            draws: [max_new_tokens, B] in [0, 1), the random numbers of each row, instead of the generator's.
            parsers: those of each row; by default every row has the sampler's.
            share: (first, all): these prompts are the rows from `first` on of a batch of `all`, and get the random
                numbers that they would have in it.
        """
        n, limit = len(prompts), self.max_new_tokens
        at, total = share or (0, n)
        if draws is None:
            draws = torch.zeros(limit, n) if greedy else torch.rand(limit, total, generator=generator)[:, at : at + n]
        rules = [self.parsers] * n if parsers is None else parsers

        def find(row: int, ids: Sequence[int]) -> int | None:
            return find_token_end(self.family.decode, ids, rules[row])

        def over(rows: Sequence[int], replies: Sequence[Sequence[int]]) -> list[bool]:
            return [find(row, ids) is not None for row, ids in zip(rows, replies, strict=True)]

        asked = over if any(rules) else None
        (ids, logp, mask, cut), first = self.decode(prompts, draws.to(self.family.device), greedy, temperature, asked)
        lengths = mask.sum(-1).tolist()
        rows = [row[:length] for row, length in zip(ids.tolist(), lengths, strict=True)]
        for i, row in enumerate(rows):
            if (end := find(i, row)) is not None:
                rows[i], cut[i] = row[:end], False
                ids[i, end:], mask[i, end:], logp[i, end:] = self.family.pad_id, False, 0.0
        longest = max(len(row) for row in rows)
        ids, mask, logp = ids[:, :longest], mask[:, :longest], logp[:, :longest]
        return Replies(ids, mask, logp, first.float(), cut, [self.family.decode(row) for row in rows])

    def decode(
        self, prompts: Sequence[Prompt], draws: Tensor, greedy: bool, temperature: float, over: Over | None
    ) -> tuple[Sampled, Tensor]:
        """Token by token, what `sample` asks for (see `EagerDecoding.decode`), and the states of the last prompt
        tokens, [B, H]."""
        entries = self.prefill_cached(prompts)
        first = torch.stack([entry[2] for entry in entries])
        next_positions = torch.tensor([prompt.next_position for prompt in prompts], device=first.device)
        sampled = self.decoding.decode(
            [entry[:2] for entry in entries], first, next_positions, draws, self.stop, greedy=greedy,
            temperature=temperature, over=over,
        )  # fmt: skip
        return sampled, first

    @torch.no_grad()
    def last_hidden(self, prompts: Sequence[Prompt]) -> Tensor:
        """State of the last prompt token, [B, H] float32: what the value head reads.

        The same numbers as `Replies.hidden`.
        """
        return torch.stack([entry[2] for entry in self.prefill_cached(prompts)]).float()

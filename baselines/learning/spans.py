"""Which tokens of a reply are its action: RL4VLM weighs them differently from the thoughts before them.

By character offsets, so it holds for every parser and tokenizer; the published code looks for the token ids of one
tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..engine.policy import Sample
from ..models.family import Family

UNREAD = 4  # tokens at the end of a reply that count as its action where none was read


def action_mask(
    family: Family, samples: Sequence[Sample], spans: Sequence[tuple[int, int] | None], width: int
) -> Tensor:
    """True on the tokens from the one in which the action begins to the end of the turn, [B, width] bool.

    What comes after the action (a closing tag, the end of turn) belongs to it, as in RL4VLM. Of a reply in which no
    action was read, the last `UNREAD` tokens are the action, as in RL4VLM's code: a penalty for such a reply counts
    whatever weight the thoughts have.

    Args:
        samples: the replies.
        spans: character range of the action in each reply's text, or None.
        width: columns of the mask.
    """
    mask = torch.zeros(len(samples), width, dtype=torch.bool)
    for row, (sample, span) in enumerate(zip(samples, spans, strict=True)):
        ids = sample.ids.tolist()
        begin = len(ids) - UNREAD if span is None else family.count_tokens(ids, span[0] + 1) - 1
        mask[row, max(0, begin) : len(ids)] = True
    return mask

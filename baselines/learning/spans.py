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


def action_mask(
    family: Family, samples: Sequence[Sample], spans: Sequence[tuple[int, int] | None], width: int
) -> Tensor:
    """True on the tokens from the one in which the action begins to the end of the turn, [B, width] bool.

    What comes after the action (a closing tag, the end of turn) belongs to it, as in RL4VLM. A reply in which no action
    was read is all thoughts.

    Args:
        samples: the replies.
        spans: character range of the action in each reply's text, or None.
        width: columns of the mask.
    """
    mask = torch.zeros(len(samples), width, dtype=torch.bool)
    for row, (sample, span) in enumerate(zip(samples, spans, strict=True)):
        if span is not None:
            ids = sample.ids.tolist()
            mask[row, family.count_tokens(ids, span[0] + 1) - 1 : len(ids)] = True
    return mask

"""Shared parts of sampling and scoring: prompts as keys and values, images as vision features, logits.

Within a batch many prompts begin alike (the instructions) and many are equal (few states, or the same state seen
again), so the forward pass is a tree: common prefix once, each distinct prompt once, each reply. It is exact, because
attention is causal. What was computed is kept until the weights change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..models.decoder import ImageTokens, Segment
from ..models.family import Family, Fifo, ImageInput, Prompt

# ---- rows of a batch -------------------------------------------------------------------------------------------------

SHORTEST_PREFIX = 8  # tokens; a shorter common prefix is not worth a separate pass


def common_prefix(prompts: Sequence[Prompt]) -> int:
    """Length of the text that all prompts begin with, before any image and short of the last token; 0 if it is not
    worth sharing."""
    if len(prompts) < 2:
        return 0
    limit = min(len(prompt) - 1 for prompt in prompts)
    limit = min([limit, *(int(prompt.image_slots[0]) for prompt in prompts if len(prompt.image_slots))])
    first = prompts[0].ids[:limit].numpy()
    for prompt in prompts[1:]:
        different = np.nonzero(prompt.ids[:limit].numpy() != first[:limit])[0]
        if len(different):
            limit = int(different[0])
    return limit if limit >= SHORTEST_PREFIX else 0


PROMPT_BYTES = 2**31  # of the distinct prompts whose keys and values are kept until the weights change
CACHED_IMAGES = 2048  # distinct images whose features are kept until the vision tower changes
PREFILL_TOKENS = 2**15  # prompt tokens of one prefill pass while sampling, padding counted


class Prefill:
    """Runs prompts through a model. `vision_of` is one with the same vision tower, whose features are used instead of
    computing them again."""

    def __init__(self, family: Family, *, vision_of: Prefill | None = None) -> None:
        self.family, self.decoder = family, family.decoder
        self.vision_of = vision_of
        self.embedding = family.language_model.embed_tokens
        self.suppress = torch.zeros(family.rows, device=family.device)
        self.suppress[list(family.suppressed)] = float("-inf")
        self.temperature = 1.0  # logits are divided by it, in sampling and scoring alike: what training knows
        self._features: Fifo = Fifo(CACHED_IMAGES)
        self._entries: Fifo = Fifo(1)  # as many as `PROMPT_BYTES` hold of the newest prompt's size
        vision = set(family.vision_parameters())
        self._vision_weights = list(vision)
        self._text_weights = [p for p in family.model.parameters() if p not in vision]
        self._vision_stamp: list[int] = []
        self._text_stamp: list[int] = []

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., V] float32 over the temperature, special tokens at -inf; in sampling and scoring alike."""
        return self.restrict(self.family.logits(hidden))

    def restrict(self, logits: Tensor) -> Tensor:
        """Logits [..., V] of the model -> those that are sampled from."""
        return (logits if self.temperature == 1.0 else logits / self.temperature) + self.suppress

    def prefill_distinct(self, prompts: Sequence[Prompt], train_vision: bool) -> tuple[list[Segment], Tensor, Tensor]:
        """`prefill` each distinct prompt once; and the row of each prompt in that, [B]."""
        unique = {prompt.key: prompt for prompt in prompts}
        row_of = {key: row for row, key in enumerate(unique)}
        index = torch.tensor([row_of[prompt.key] for prompt in prompts], device=self.family.device)
        return *self.prefill(list(unique.values()), train_vision), index

    def prefill(self, prompts: Sequence[Prompt], train_vision: bool) -> tuple[list[Segment], Tensor]:
        """Run U distinct prompts: left-padded, their common text prefix once.

        Returns:
            (segments: the shared prefix, if any, and the rest of each prompt; hidden of each last token [U, H]).
        """
        device = self.family.device
        shared = common_prefix(prompts)
        width = max(len(prompt) for prompt in prompts) - shared
        pads = [width + shared - len(prompt) for prompt in prompts]
        tokens = torch.full((len(prompts), width), self.family.pad_id)
        positions = torch.zeros(3, len(prompts), width, dtype=torch.int64)
        visible = torch.ones(len(prompts), width, dtype=torch.bool)
        for row, (prompt, pad) in enumerate(zip(prompts, pads, strict=True)):
            tokens[row, pad:] = prompt.ids[shared:]
            positions[:, row, pad:] = prompt.positions[:, shared:]
            visible[row, :pad] = False
        segments: list[Segment] = []
        if shared:
            first = prompts[0]
            rotary = self.decoder.rotary(first.positions[:, None, :shared].to(device))
            _, kv = self.decoder.forward(self.embedding(first.ids[None, :shared].to(device)), rotary)
            segments.append(Segment(kv))
        offsets = [pad - shared for pad in pads]
        x, images = self.place_images(self.embedding(tokens.to(device)), prompts, offsets, train_vision)
        padded = visible.to(device) if any(pads) else None
        rotary = self.decoder.rotary(positions.to(device))
        hidden, kv = self.decoder.forward(x, rotary, segments, padded, images)
        bias = None if padded is None else torch.zeros_like(padded, dtype=x.dtype).masked_fill(~padded, float("-inf"))
        return [*segments, Segment(kv, bias)], hidden[:, -1]

    def prefill_cached(self, prompts: Sequence[Prompt]) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Per prompt (keys, values [layers, kv_heads, P, d], hidden [H]), computed once while the weights stay."""
        self._forget_stale()
        entries = {prompt.key: self._entries[prompt.key] for prompt in prompts if prompt.key in self._entries}
        distinct = list({prompt.key: prompt for prompt in prompts if prompt.key not in entries}.values())
        size = max(1, PREFILL_TOKENS // max(map(len, distinct), default=1))
        for at in range(0, len(distinct), size):
            missing = distinct[at : at + size]
            segments, last = self.prefill(missing, train_vision=False)
            for row, prompt in enumerate(missing):
                parts = []
                for segment in segments:
                    own = 0 if segment.kv[0][0].shape[0] == 1 else row
                    pad = 0 if segment.bias is None else int((segment.bias[own] != 0).sum())
                    parts.append([torch.stack([layer[side][own, :, pad:] for layer in segment.kv]) for side in (0, 1)])
                keys, values = (torch.cat(side, dim=2) for side in zip(*parts, strict=True))
                self._entries.limit = max(1, PROMPT_BYTES // (keys.nbytes + values.nbytes))
                entries[prompt.key] = self._entries.put(prompt.key, (keys, values, last[row]))
        return [entries[prompt.key] for prompt in prompts]

    def place_images(
        self, x: Tensor, prompts: Sequence[Prompt], offsets: Sequence[int], train_vision: bool
    ) -> tuple[Tensor, ImageTokens | None]:
        """Put vision features where the prompts have image tokens, and say where that is. `offsets` shift a prompt's
        slots to its columns in `x`."""
        rows, columns = [], []
        for row, (prompt, offset) in enumerate(zip(prompts, offsets, strict=True)):
            rows.append(torch.full((len(prompt.image_slots),), row))
            columns.append(prompt.image_slots + offset)
        images = [image for prompt in prompts for image in prompt.images]
        if not images:
            return x, None
        features = torch.cat(self.features(images, train_vision)).to(x.dtype)
        own, *deep = features.split(x.shape[-1], dim=-1)
        at, of = (torch.cat(part).to(x.device) for part in (rows, columns))
        return x.index_put((at, of), own), ImageTokens(at, of, tuple(deep))

    def features(self, images: Sequence[ImageInput], train: bool) -> list[Tensor]:
        """Features of each image; equal images are encoded once."""
        if self.vision_of is not None:
            return self.vision_of.features(images, train)
        self._forget_stale()
        stored = {} if train else self._features
        known = {image.digest: stored[image.digest] for image in images if image.digest in stored}
        missing = list({image.digest: image for image in images if image.digest not in known}.values())
        if missing:
            with torch.set_grad_enabled(train and torch.is_grad_enabled()):
                encoded = self.family.encode_images(missing)
            for image, features in zip(missing, encoded, strict=True):
                known[image.digest] = features if train else self._features.put(image.digest, features.clone())
        return [known[image.digest] for image in images]

    def forget(self) -> None:
        """Drop every cached prompt and image. What is computed next then depends on nothing that came before: exact
        resumption needs that."""
        self._features.clear()
        self._entries.clear()

    def forget_prompts(self) -> None:
        """Drop the keys and values of every cached prompt: gigabytes that scoring does not need. Images stay."""
        self._entries.clear()

    def _forget_stale(self) -> None:
        """Drop what older weights computed. Every in-place change of a tensor counts up its version, so no caller can
        forget to say so.

        The one exception: optimizers with `fused=True` do not count it up (PyTorch 2.13), so `Optimizers.step` does; a
        stale cache would show at once in `rollout/logp_diff_*`.
        """
        vision, text = [p._version for p in self._vision_weights], [p._version for p in self._text_weights]
        if vision != self._vision_stamp:
            self._features.clear()
        if vision != self._vision_stamp or text != self._text_stamp:
            self._entries.clear()
            self._vision_stamp, self._text_stamp = vision, text


# ---- how likely stored replies are, with gradients -------------------------------------------------------------------

LOGIT_CHUNK = 2**26  # logits held at once (256 MB in float32)


class Scorer(Prefill):
    """Log-probabilities of replies to prompts."""

    def score(self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor, *, train_vision: bool = False) -> Tensor:
        """Log-probabilities of stored replies under the current weights, [B, R] float32, 0 where masked; with gradients
        if enabled.

        Args:
            prompts: B prompts, as they were when the replies were sampled.
            ids: [B, R] int64; mask: [B, R] bool, right-padded.
            train_vision: send gradients into the vision tower; otherwise its features come from the cache.
        """
        return self.score_states(prompts, ids, mask, train_vision=train_vision)[0]

    def score_states(
        self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor, *, train_vision: bool = False
    ) -> tuple[Tensor, Tensor]:
        """`score`, and the states of the last prompt tokens, [B, H]; with gradients if enabled. Equal replies to one
        prompt are run once."""
        segments, last, index = self.prefill_distinct(prompts, train_vision)
        states, starts = last[index], torch.tensor([prompt.next_position for prompt in prompts], device=ids.device)
        keys = torch.cat([index.unsqueeze(1), starts.unsqueeze(1), ids.masked_fill(~mask, -1)], dim=1)
        distinct, row = keys.unique(dim=0, return_inverse=True)
        index, starts, ids = distinct[:, 0], distinct[:, 1], distinct[:, 2:]
        mask, ids = ids >= 0, ids.clamp(min=0)
        hidden = last[index].unsqueeze(1)
        steps = int(mask.sum(-1).max()) - 1  # the last token is predicted, never fed
        if steps > 0:
            past = [segment.select(index) for segment in segments]
            hidden = torch.cat([hidden, self._feed(starts, ids[:, :steps], past)], dim=1)
        return self._spread(hidden, ids, mask)[row], states

    def _feed(self, starts: Tensor, ids: Tensor, past: Sequence[Segment]) -> Tensor:
        """States of the first T reply tokens [b, T], at positions from `starts` [b] on, [b, T, H]."""
        positions = starts.unsqueeze(1) + torch.arange(ids.shape[1], device=ids.device)
        return self.decoder.forward(self.embedding(ids), self.decoder.rotary(positions.expand(3, -1, -1)), past)[0]

    @torch.no_grad()
    def reply_states(self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states of each prompt's last token, [B, H] float32, and what `summarise` makes of each reply's."""
        segments, last, index = self.prefill_distinct(prompts, train_vision=False)
        starts = torch.tensor([prompt.next_position for prompt in prompts], device=ids.device)
        fed = self._feed(starts, ids, [segment.select(index) for segment in segments]).float()
        return last[index].float(), summarise(fed, mask)

    def _spread(self, hidden: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
        """Log-probabilities of `ids` given the states before them, computed at real tokens only."""
        mask = mask[:, : hidden.shape[1]]
        logp = self._log_probs(hidden[: mask.shape[0], : mask.shape[1]][mask], ids[:, : mask.shape[1]][mask])
        full = torch.zeros(ids.shape, device=logp.device)
        rows, columns = mask.nonzero(as_tuple=True)
        return full.index_put((rows, columns), logp)

    def _log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """[M, H], [M] -> [M] float32, in chunks that bound the memory of the logits."""

        def chunk(h: Tensor, target: Tensor) -> Tensor:
            return -F.cross_entropy(self.logits(h), target, reduction="none")

        size = max(1, LOGIT_CHUNK // self.suppress.shape[0])
        if len(targets) <= size:
            return chunk(hidden, targets)
        parts = zip(hidden.split(size), targets.split(size), strict=True)
        return torch.cat([checkpoint(chunk, h, target, use_reentrant=False) for h, target in parts])


def summarise(fed: Tensor, mask: Tensor) -> Tensor:
    """Mean and last of the states of each reply's tokens: [B, R, H] and [B, R] bool -> [B, 2 H]."""
    lengths = mask.sum(-1, keepdim=True)
    end = fed.take_along_dim((lengths - 1).unsqueeze(-1), 1).squeeze(1)
    return torch.cat([(fed * mask.unsqueeze(-1)).sum(1) / lengths, end], dim=-1)

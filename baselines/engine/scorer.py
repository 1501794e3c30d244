"""How likely stored replies are under the current weights, with gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..models.cache import Segment
from ..models.family import Prompt
from .batching import length_buckets
from .prefill import Prefill

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
        """`score`, and the states of the last prompt tokens, [B, H]; with gradients if enabled."""
        distinct = {prompt.key: len(prompt) for prompt in prompts}
        keys = list(distinct)
        groups = [{keys[i] for i in group} for group in length_buckets(list(distinct.values()))]
        if len(groups) == 1:
            return self._score_alike(prompts, ids, mask, train_vision)
        buckets = [[row for row, prompt in enumerate(prompts) if prompt.key in group] for group in groups]
        parts = []
        for rows in buckets:
            at = torch.tensor(rows, device=self.family.device)
            parts.append(self._score_alike([prompts[row] for row in rows], ids[at], mask[at], train_vision))
        order = torch.tensor([row for rows in buckets for row in rows], device=self.family.device).argsort()
        logp, states = (torch.cat(each)[order] for each in zip(*parts, strict=True))
        return logp, states

    def _score_alike(
        self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor, train_vision: bool
    ) -> tuple[Tensor, Tensor]:
        """`score_states` for prompts of similar length."""
        segments, last, index = self.prefill_distinct(prompts, train_vision)
        logp = torch.zeros(ids.shape, device=self.family.device)
        for rows in length_buckets(mask.sum(-1).tolist()):
            at = torch.tensor(rows, device=self.family.device)
            past = [s.select(index[at]) for s in segments]
            scored = self._score_rows([prompts[row] for row in rows], ids[at], mask[at], last[index[at]], past)
            logp = logp.index_copy(0, at, scored)
        return logp, last[index]

    def _score_rows(
        self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor, last: Tensor, past: Sequence[Segment]
    ) -> Tensor:
        """Score replies of similar length given the states of their prompts, [b, R]."""
        hidden = last.unsqueeze(1)
        steps = int(mask.sum(-1).max()) - 1  # the last token is predicted, never fed
        if steps > 0:
            hidden = torch.cat([hidden, self._feed(prompts, ids[:, :steps], past)], dim=1)
        return self._spread(hidden, ids, mask)

    def _feed(self, prompts: Sequence[Prompt], ids: Tensor, past: Sequence[Segment]) -> Tensor:
        """States of the first T reply tokens [b, T] after their prompts, [b, T, H]."""
        next_positions = torch.tensor([prompt.next_position for prompt in prompts], device=ids.device)
        positions = next_positions.unsqueeze(1) + torch.arange(ids.shape[1], device=ids.device)
        return self.decoder.forward(self.embedding(ids), self.decoder.rotary(positions.expand(3, -1, -1)), past)[0]

    @torch.no_grad()
    def reply_states(self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """What is known of each prompt and of each reply: the state of the last prompt token, [B, H] float32, and of
        the reply's tokens the mean and the last, [B, 2 H] float32."""
        segments, last, index = self.prefill_distinct(prompts, train_vision=False)
        fed = self._feed(prompts, ids, [segment.select(index) for segment in segments]).float()
        lengths = mask.sum(-1, keepdim=True)
        end = fed.take_along_dim((lengths - 1).unsqueeze(-1), 1).squeeze(1)
        return last[index].float(), torch.cat([(fed * mask.unsqueeze(-1)).sum(1) / lengths, end], dim=-1)

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

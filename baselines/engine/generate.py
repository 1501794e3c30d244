"""Sampling by the library's `generate`, for families without a fast path."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

from ..models.family import Prompt
from ..models.library import LibraryFamily
from .engine import CHECK, Engine, Over, Replies, choose, summarise


class PlainEngine(Engine):
    """Samples with the library's `generate`, and scores with one padded forward pass.
    Every prompt is run each time, and the library rounds its logits to the model's type."""

    family: LibraryFamily
    name = "generate"

    @torch.no_grad()
    def decode(self, prompts: Sequence[Prompt], draws: Tensor, temperature: float, over: Over | None) -> Replies:
        limit = len(draws)
        inputs = self.family.inputs(prompts)
        width = inputs["input_ids"].shape[1]

        chosen: list[Tensor] = []  # log-probabilities of a token of each row

        def pick(rows: Tensor, scores: Tensor) -> Tensor:
            """Leave every row one next token, so that the library's argmax takes it."""
            logp = torch.log_softmax(self.restrict(scores.float()), dim=-1)
            token = choose(logp, draws[rows.shape[1] - width], temperature).unsqueeze(-1)
            chosen.append(logp.gather(-1, token).squeeze(-1))
            return torch.full_like(logp, float("-inf")).scatter(-1, token, 0.0)

        def stop(rows: Tensor, scores: Any, **_: Any) -> Tensor:
            """End rows whose reply is over; asked every `CHECK` steps, as in `Engine.decode`."""
            new, ended = rows[:, width:], [False] * len(rows)
            if over is not None and new.shape[1] % CHECK == 0:
                ended = over(range(len(new)), new.tolist())
            return torch.tensor(ended, device=rows.device)

        # Tokens are chosen here: checkpoints' generation configs cut the distribution.
        settings = GenerationConfig(
            do_sample=False, num_beams=1, max_new_tokens=limit, min_new_tokens=0, use_cache=True,
            eos_token_id=list(self.family.stop_ids), pad_token_id=self.family.pad_id,
        )  # fmt: skip
        with _swapped(self.family.model, settings), self._states() as states:
            rows = self.family.model.generate(
                **inputs,
                logits_processor=LogitsProcessorList([pick]),
                stopping_criteria=StoppingCriteriaList([stop] if over else []),
            )[:, width:]

        # The library stops at the longest reply; `Replies` of `decode` are as wide as the limit.
        stops, spare = torch.isin(rows, self.stop), (0, limit - rows.shape[1])
        mask = F.pad(stops.cumsum(-1) - stops.long() == 0, spare)
        ids = F.pad(rows, spare).masked_fill(~mask, self.family.pad_id)
        logp = F.pad(torch.stack(chosen, dim=1)[:, : rows.shape[1]], spare).masked_fill(~mask, 0.0)
        return Replies(ids, mask, logp, states[0][:, -1], ~stops.any(-1))

    @torch.no_grad()
    def last_hidden(self, prompts: Sequence[Prompt]) -> Tensor:
        with self._states() as states:
            self.family.model(**self.family.inputs(prompts), logits_to_keep=1)
        return states[0][:, -1].float()

    def score_states(
        self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor, *, train_vision: bool = False
    ) -> tuple[Tensor, Tensor]:
        """See `Engine.score_states`; gradients reach a vision tower that asks for them."""
        length = int(mask.sum(-1).max())
        ids, real, spare = ids[:, :length], mask[:, :length], (0, ids.shape[1] - length)
        inputs = self.family.inputs(prompts, ids, real)
        with self._states() as states:
            out = self.family.model(**inputs, logits_to_keep=length + 1, use_cache=False)
        scores = torch.log_softmax(self.restrict(out.logits[:, -length - 1 : -1].float()), dim=-1)
        logp = scores.gather(-1, ids.unsqueeze(-1)).squeeze(-1).where(real, 0.0)
        return F.pad(logp, spare), states[0][:, -length - 1]

    @torch.no_grad()
    def reply_states(self, prompts: Sequence[Prompt], ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        length, inputs = ids.shape[1], self.family.inputs(prompts, ids, mask)
        with self._states() as states:
            self.family.model(**inputs, logits_to_keep=length + 1, use_cache=False)
        return states[0][:, -length - 1].float(), summarise(states[0][:, -length:].float(), mask)

    @contextmanager
    def _states(self) -> Iterator[list[Tensor]]:
        """The last layer's states of every forward pass inside, [B, T, H] each."""
        states: list[Tensor] = []
        model = self.family.model.model
        hook = model.register_forward_hook(lambda module, args, out: states.append(out.last_hidden_state))
        try:
            yield states
        finally:
            hook.remove()


@contextmanager
def _swapped(model: Any, settings: GenerationConfig) -> Iterator[None]:
    """Replace the model's generation config, from which the library fills in gaps."""
    own, model.generation_config = model.generation_config, settings
    try:
        yield
    finally:
        model.generation_config = own

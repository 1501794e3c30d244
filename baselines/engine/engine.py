"""The engine of the learners: it samples replies, and says again how likely stored replies are.

Both go through the same prefill (`prefill.py`) and the same suppressed tokens, so that the two agree; every update of a
learner measures how well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vlgym.types import Reply, Turn

from ..models.family import Prompt
from ..runs import distributed
from ..runs.distributed import ALONE, World
from .prefill import Scorer
from .sampler import Sampler


class Engine(Sampler, Scorer):
    """Samples and scores with one model; arguments are those of `Sampler`.

    Attributes:
        name: what a run's record calls it.
    """

    name = "engine"


# ---- the engine as a policy ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sample:
    """One sampled reply, attached to its step record.

    Attributes:
        prompt: the exact prompt that was answered; it is stored, never rebuilt.
        ids: [r] int64, end-of-turn token included where the reply has one; logp: [r] float32 when sampled; hidden: [H]
            float32, state of the last prompt token.
        cut: the reply ran into the token limit before it was over.
    """

    prompt: Prompt
    ids: Tensor
    logp: Tensor
    hidden: Tensor
    cut: bool


class ModelPolicy:
    """Samples replies from an engine, at its temperature.

    Args:
        engine: the model.
        generator: CPU generator of the sampler; its state is part of a checkpoint.
        greedy: take the likeliest tokens instead.
        name: as reports show it.
        world: with several processes, every one draws the random numbers of all and takes its own, so that together
            they sample as one process would.
            All make every call, those too that have no prompt in it.
    """

    def __init__(
        self,
        engine: Engine,
        generator: torch.Generator,
        *,
        greedy: bool = False,
        name: str = "vlm",
        world: World = ALONE,
    ) -> None:
        self.engine, self.generator, self.greedy, self.name, self.world = engine, generator, greedy, name, world

    def describe(self) -> dict[str, Any]:
        """Return the settings, other than the prompt, that a reply depends on, for a run's record."""
        seed, system = self.generator.initial_seed(), self.engine.family.system
        sampler = {"greedy": True} if self.greedy else {"temperature": self.engine.temperature, "seed": seed}
        return {"name": self.name, **self.engine.describe(), **sampler, **({"system": system} if system else {})}

    def sample(self, prompts: Sequence[Prompt]) -> tuple[list[Sample], list[str]]:
        """A reply to each prompt, as ids with their log-probabilities and as text."""
        counts, rank = distributed.gather_objects(len(prompts), self.world), self.world.rank
        if not prompts:
            if not self.greedy:  # the others draw
                torch.rand(self.engine.max_new_tokens, sum(counts), generator=self.generator)
            return [], []
        share = sum(counts[:rank]), sum(counts)
        out = self.engine.sample(prompts, self.generator, greedy=self.greedy, share=share)
        lengths, cuts = out.mask.sum(-1).tolist(), out.cut.tolist()
        samples = [
            Sample(prompt, out.ids[i, :n], out.logp[i, :n], out.hidden[i], cuts[i])
            for i, (prompt, n) in enumerate(zip(prompts, lengths, strict=True))
        ]
        return samples, out.texts

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer each environment's prompt."""
        samples, texts = self.sample([self.engine.family.encode(turn.messages) for turn in turns])
        return [Reply(text, sample, sample.cut) for text, sample in zip(texts, samples, strict=True)]


def pad_rows(rows: Sequence[Tensor], fill: float) -> tuple[Tensor, Tensor]:
    """Right-pad 1-D tensors: ([B, R] values, [B, R] bool mask)."""
    lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
    padded = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=fill)
    return padded, torch.arange(padded.shape[1], device=padded.device) < lengths.unsqueeze(1)

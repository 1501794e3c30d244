"""A model as a policy to evaluate, through its engine.

Its replies go into a report. Those of `baselines.engine.engine.ModelPolicy`, the learners' policy, go into a loss; its
draws depend on the batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from vlgym.making import unwrap
from vlgym.types import Reply, Turn, Usage

from ..engine.engine import Engine
from ..models.limits import Limits
from .sampling import Sampling

CONCURRENCY = 16
"""Episodes at once, where the user does not say: enough that a batch is well used, few enough for a large model."""


class EnginePolicy:
    """Answers with an engine. A reply ends where the parser of its turn's environment has what it asked for.

    Args:
        engine: the model.
        sampling: how tokens are chosen; its token limit is the engine's.
        name: as reports show it.
        limits: the model's training; its prompt layout is what the policy prefers.
        weights: which model it is, for a run's record.
    """

    sees = True
    concurrency = CONCURRENCY

    def __init__(self, engine: Engine, sampling: Sampling, *, name: str, limits: Limits, weights: str = "") -> None:
        self.engine, self.sampling, self.name, self.limits, self.weights = engine, sampling, name, limits, weights

    def describe(self) -> dict[str, Any]:
        """Return the settings, other than the prompt, that a reply depends on, for a run's record."""
        sampler = self.engine.describe()
        return {
            "name": self.name, "model": self.weights, "engine": self.engine.name, "dtype": sampler["dtype"],
            "device": self.engine.family.device.type, **self.engine.family.describe_images(),
            **({} if self.limits.system is None else {"system": self.limits.system}),
            "max_new_tokens": self.sampling.max_new_tokens, "temperature": self.sampling.temperature,
            "seed": None if self.sampling.greedy else self.sampling.seed,
            "torch": version("torch"), "transformers": version("transformers"),
        }  # fmt: skip

    def prefers(self) -> dict[str, Any]:
        """Prompt layout and reply style of the model's training."""
        found = {name: getattr(self.limits, name) for name in ("history_turns", "history_images", "parser")}
        return {name: value for name, value in found.items() if value is not None}

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer each environment's prompt."""
        if not turns:
            return []
        start = time.perf_counter()
        prompts = [self.engine.family.encode(turn.messages) for turn in turns]
        out = self.engine.sample(
            prompts, greedy=self.sampling.greedy, temperature=self.sampling.temperature or 1.0,
            draws=self.sampling.draws(turns), parsers=[(unwrap(turn.env).parser,) for turn in turns],
        )  # fmt: skip
        seconds = time.perf_counter() - start
        lengths, cuts = out.mask.sum(-1).tolist(), out.cut.tolist()
        return [
            Reply(text, cut=cut, usage=Usage(len(prompt), length, seconds))
            for text, cut, prompt, length in zip(out.texts, cuts, prompts, lengths, strict=True)
        ]

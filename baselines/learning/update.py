"""One update of a run: its phases, what they took, and what to try where memory runs out in one."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from vlgym.errors import UserError

from ..engine.engine import Engine
from .batch import Batch


class Update:
    """One update, while a learner makes it.

    Attributes:
        number: from 1.
        seconds: of each phase.
    """

    def __init__(self, number: int, advice: Mapping[str, str], engines: Sequence[Engine] = ()) -> None:
        self.number, self._advice, self._engines = number, advice, engines
        self.seconds: dict[str, float] = {}
        self.result: tuple[Batch, dict[str, float]] | None = None

    @contextmanager
    def phase(self, name: str, *, keep_prompts: bool = False) -> Iterator[None]:
        """Time a block ("rollout", "reference", "check", "update"), and say what to try if memory runs out in it. After
        the rollout the keys and values of its prompts are dropped, unless the learner samples again and keeps them."""
        start = time.perf_counter()
        with memory_advice(self._advice["rollout" if name == "rollout" else "update"]):
            yield
        if name == "rollout" and not keep_prompts:
            for engine in self._engines:
                engine.forget_prompts()
        self.seconds[f"seconds/{name}"] = time.perf_counter() - start

    def log(self, batch: Batch, metrics: dict[str, float]) -> None:
        """Hand over the rollout and the metrics of this update. Once per update, at its end."""
        self.result = (batch, metrics)


@contextmanager
def memory_advice(advice: str) -> Iterator[None]:
    """Turn running out of memory into an error that says what to try.

    Raises:
        UserError: memory ran out in the block.
    """
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
        if known or "can't allocate memory" in str(error) or "not enough memory" in str(error):
            first = str(error).split("\n")[0]
            raise UserError(f"Out of memory ({first}). The newest checkpoint is intact; {advice}") from error
        raise


def peak_memory(device: torch.device) -> int:
    """Most bytes allocated on an accelerator, or by this process, since it began."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

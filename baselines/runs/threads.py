"""Torch's CPU threads, and whether two equal runs give equal numbers."""

from __future__ import annotations

import torch

from vlgym.errors import UserError


def set_up_torch(threads: int, device: str, *, deterministic: bool) -> None:
    """Set torch up for a run, before it computes anything.

    With several threads, sums that the backward pass of an indexing makes come in another order in every run, unless
    torch's deterministic algorithms are on. On CUDA they stay off: some kernels have no such form.

    Args:
        threads: CPU threads; 0 leaves torch's choice. Another number may change the last bits.
        device: torch device of the run.
        deterministic: on a CPU, the same numbers in every run with as many threads.

    Raises:
        UserError: `threads` is negative.
    """
    if threads < 0:
        raise UserError(f"--threads {threads} must be >= 0; 0 leaves torch's choice.")
    if threads:
        torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic and device == "cpu")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]

"""Torch's device and CPU threads, and whether two equal runs give equal numbers."""

from __future__ import annotations

import torch

from vlgym.errors import UserError, check_number, nearest

MOST_THREADS = 1024


def set_up_torch(threads: int, device: str) -> None:
    """Set torch up for a run, before it computes anything.

    With several threads, sums that the backward pass of an indexing makes come in another order in every run, unless
    torch's deterministic algorithms are on. On CUDA they stay off: some kernels have no such form.

    Args:
        threads: CPU threads; 0 leaves torch's choice. Another number may change the last bits.
        device: torch device of the run.

    Raises:
        UserError: no such device, or no such number of threads.
    """
    check_threads(threads)
    check_device(device)
    if threads:
        torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(device == "cpu")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def check_threads(threads: int) -> None:
    """Raise `UserError` unless torch can have this many CPU threads."""
    check_number("--threads", threads, 0, MOST_THREADS, hint="0 leaves torch's choice.")


def check_device(device: str) -> None:
    """Raise `UserError` unless there is such a device: `cpu`, or a CUDA device of this machine."""
    kind, _, number = device.partition(":")
    if device != "cpu" and (kind != "cuda" or (":" in device and not number.isdecimal())):
        raise UserError(f"--device {device!r} is not one of cpu, cuda, cuda:NUMBER.{nearest(device, ('cpu', 'cuda'))}")
    if device == "cpu":
        return
    if not torch.cuda.is_available():
        why = "finds none (`nvidia-smi` says why)" if torch.version.cuda else "is built for CPUs alone"
        raise UserError(
            f"--device {device}: there is no CUDA device here; torch {torch.__version__} {why}. Use --device cpu."
        )
    if number and int(number) >= torch.cuda.device_count():
        raise UserError(
            f"--device {device}: this machine's CUDA devices are cuda:0 to cuda:{torch.cuda.device_count() - 1}."
        )

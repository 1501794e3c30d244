"""Torch's device and CPU threads, and whether two equal runs give equal numbers."""

from __future__ import annotations

import resource
import sys

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


def choose_device(device: str) -> str:
    """Return the device; for "auto" CUDA where there is one, else MPS, else the CPU."""
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"


def device_in_words(device: str) -> str:
    """A device with its name and memory, or why it is the CPU."""
    if device.startswith("cuda"):
        found = torch.cuda.get_device_properties(torch.device(device))
        return f"{device} ({found.name}, {found.total_memory / 2**30:.0f} GiB)"
    better = choose_device("auto")
    none = "no CUDA or MPS device here" if better == "cpu" else f"--device {better} is here, too"
    return f"cpu ({none})" if device == "cpu" else device


def check_device(device: str) -> None:
    """Raise `UserError` unless there is such a device: `cpu`, `mps`, or a CUDA device of this machine."""
    kind, _, number = device.partition(":")
    if device not in ("cpu", "mps") and (kind != "cuda" or (":" in device and not number.isdecimal())):
        near = nearest(device, ("auto", "cpu", "cuda", "mps"))
        raise UserError(f"--device {device!r} is not one of auto, cpu, mps, cuda, cuda:NUMBER.{near}")
    if device == "cpu" or (device == "mps" and torch.backends.mps.is_available()):
        return
    if device == "mps":
        raise UserError("--device mps: there is no MPS device here. Use --device auto.")
    if not torch.cuda.is_available():
        why = "finds none (`nvidia-smi` says why)" if torch.version.cuda else "is built for CPUs alone"
        raise UserError(
            f"--device {device}: there is no CUDA device here; torch {torch.__version__} {why}. Use --device cpu."
        )
    if number and int(number) >= torch.cuda.device_count():
        raise UserError(
            f"--device {device}: this machine's CUDA devices are cuda:0 to cuda:{torch.cuda.device_count() - 1}."
        )


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory ran out, on an accelerator or of the host."""
    known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
    return known or "can't allocate memory" in str(error) or "not enough memory" in str(error)


def peak_memory(device: torch.device) -> int:
    """Most bytes allocated on an accelerator, or by this process, since it began."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

"""How a process that torchrun started joins the others: on which device, how long it waits for them, and what is said
when one of them has ended.

On one machine torchrun sets RANK and LOCAL_RANK alike; on several, LOCAL_RANK counts the processes of a machine and so
its devices. Every process of a machine has one GPU of its own.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta

import torch
import torch.distributed as dist

from vlgym.errors import FailedError, UserError

from .distributed import ALONE, World

LOST = re.compile(r"connection (was )?(closed|reset|refused|aborted)|broken pipe|timed out|NCCL", re.IGNORECASE)
"""What errors of torch's backends say when another process has gone, or is late."""


class LostProcessError(FailedError):
    """Another process of the run has ended, or does not answer. Next step: resume, as the message says."""


def announced() -> int:
    """How many processes torchrun announces in the environment; 1 without it."""
    return _number("WORLD_SIZE", 1)


def local_rank() -> int:
    """The number of this process on its machine, from 0."""
    return _number("LOCAL_RANK", _number("RANK", 0))


def check_processes(device: str) -> None:
    """Check that the processes of this machine have a device each.

    Raises:
        UserError: there are fewer devices than processes, or one device was named for all.
    """
    count = announced()
    if count == 1:
        return
    if any(name not in os.environ for name in ("RANK", "MASTER_ADDR", "MASTER_PORT")):
        raise UserError(
            f"WORLD_SIZE={count} is set, but not RANK, MASTER_ADDR and MASTER_PORT: start several processes with "
            "torchrun, or unset WORLD_SIZE for a single one."
        )
    if not device.startswith("cuda"):
        return
    here = _number("LOCAL_WORLD_SIZE", local_rank() + 1)
    if ":" in device:
        raise UserError(
            f"--device {device} is one device for {here} processes; write --device cuda, and each takes its own."
        )
    found = torch.cuda.device_count()
    if here > found:
        raise UserError(
            f"{here} processes were started on this machine, which has {found} CUDA device{'s'[: found != 1]}; each "
            f"takes one: torchrun --nproc-per-node {max(found, 1)}."
        )


def own_device(device: str) -> str:
    """The torch device of this process, with its number where torchrun started several."""
    return f"cuda:{local_rank()}" if device == "cuda" and announced() > 1 else device


def join(device: str, minutes: float = 120.0, *, sharded: bool = False) -> World:
    """Join the process group that torchrun announces, or be alone.

    Args:
        device: torch device of the run. Under torchrun, `cuda` is from here on that of this process.
        minutes: how long a process waits for another one.
        sharded: make a group for a single process, too: FSDP needs one.

    Raises:
        LostProcessError: the others do not come.
    """
    if announced() == 1 and not sharded:
        return ALONE
    if not dist.is_initialized():
        cuda = device.startswith("cuda")
        if cuda and announced() > 1:
            torch.cuda.set_device(own_device(device))
        backend, patience = "cpu:gloo,cuda:nccl" if cuda else "gloo", timedelta(minutes=minutes)
        try:
            if announced() == 1:
                dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, timeout=patience)
            else:
                dist.init_process_group(backend, timeout=patience)
        except (RuntimeError, ValueError) as error:
            raise LostProcessError(
                f"The processes of this run do not find each other ({_first_line(error)}). Look at torchrun's "
                "--master-addr and --master-port."
            ) from error
    return World(dist.get_rank(), dist.get_world_size())


def launcher(world: World) -> str:
    """What begins a command of as many processes, as a user would type it."""
    if world.size == 1:
        return "python"
    here = _number("LOCAL_WORLD_SIZE", world.size)
    nodes = f"--nnodes {world.size // here} " if world.size > here else ""
    return f"torchrun {nodes}--nproc-per-node {here}"


def leave(*, failed: bool = False) -> None:
    """Leave the process group, if in one; after a failure without a word to the others, who may have gone."""
    if dist.is_initialized() and not (failed and torch.cuda.is_available()):
        dist.destroy_process_group()


def explain_loss(error: BaseException) -> str | None:
    """Return a line on an error that came because another process ended or is late; `None` for other errors."""
    if isinstance(error, LostProcessError):
        return str(error)
    found = LOST.search(str(error)) if isinstance(error, RuntimeError) else None
    if not (found or isinstance(error, dist.DistError)) or not dist.is_initialized() or dist.get_world_size() == 1:
        return None
    return (
        f"Another process of this run has ended or does not answer ({found.group() if found else _first_line(error)}); "
        "why stands in what that one printed, or it was killed."
    )


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if text and not text.isdecimal():
        raise UserError(f"The environment variable {name}={text!r} is no number; torchrun sets it.")
    return int(text) if text else default


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:200]

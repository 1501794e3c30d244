"""Data parallelism over processes started by torchrun: every process plays its share of the environments, gradients are
summed.

    torchrun --nproc-per-node 2 -m baselines.vldac --env vlgym/NumberLine-v0

Two processes make the same update as one: both draw the same global minibatches and each works on those of its own
environments, advantages are normalised over all, and every loss is a sum of contributions to the global mean. With one
process every function here does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class World:
    """One process of a run: its number (`rank`, from 0), and how many processes there are (`size`)."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0


ALONE = World()


def announced() -> int:
    """How many processes torchrun announces in the environment; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def join(device: str) -> World:
    """Join the process group that torchrun announces, or be alone."""
    if announced() == 1:
        return ALONE
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo")
    return World(dist.get_rank(), dist.get_world_size())


def leave() -> None:
    """Leave the process group, if in one."""
    if dist.is_initialized():
        dist.destroy_process_group()


def sum_gradients(parameters: Iterable[Tensor], world: World) -> None:
    """Sum gradients over processes, in one flat message; a missing gradient counts as zero."""
    if world.size == 1:
        return
    with_grad = [p for p in parameters if p.requires_grad]
    flat = torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).flatten().float() for p in with_grad])
    dist.all_reduce(flat)
    at = 0
    for p in with_grad:
        p.grad = flat[at : at + p.numel()].view_as(p).to(p.dtype)
        at += p.numel()


def gather(x: Tensor, world: World) -> Tensor:
    """Concatenate equally shaped tensors of all processes, in rank order."""
    if world.size == 1:
        return x
    parts = [torch.empty_like(x) for _ in range(world.size)]
    dist.all_gather(parts, x.contiguous())
    return torch.cat(parts)


def gather_texts(text: str, world: World) -> list[str]:
    """The texts of all processes, in rank order."""
    if world.size == 1:
        return [text]
    data = torch.tensor(list(text.encode()), dtype=torch.uint8)
    lengths = gather(torch.tensor([len(data)]), world).tolist()
    padded = torch.zeros(max(1, *lengths), dtype=torch.uint8)
    padded[: len(data)] = data
    rows = gather(padded, world).view(world.size, -1)
    return [bytes(row[:length].tolist()).decode() for row, length in zip(rows, lengths, strict=True)]


def mean(values: dict[str, float], world: World) -> dict[str, float]:
    """Mean of each metric over the processes in which it is a number; all must have the same keys."""
    if world.size == 1:
        return values
    x = torch.tensor(list(values.values()), dtype=torch.float64)
    known = x.isfinite()
    packed = torch.stack([torch.where(known, x, torch.zeros_like(x)), known.double()])
    dist.all_reduce(packed)
    return dict(zip(values, (packed[0] / packed[1]).tolist(), strict=True))


def total(count: int, world: World) -> int:
    """Sum of a number over the processes."""
    if world.size == 1:
        return count
    x = torch.tensor([count])
    dist.all_reduce(x)
    return int(x.item())


def any_of(flag: bool, world: World) -> bool:
    """Whether the flag is set in any process."""
    if world.size == 1:
        return flag
    x = torch.tensor([float(flag)])
    dist.all_reduce(x)
    return bool(x.item())


def wait(world: World) -> None:
    """Wait for all processes."""
    if world.size > 1:
        dist.barrier()

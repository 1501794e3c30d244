"""Data parallelism over processes started by torchrun: every process plays its share of the environments with its own
sampler, takes its share of every minibatch from them, and gradients are summed.

    torchrun --nproc-per-node 2 -m baselines.vldac --env vlgym/NumberLine-v1

Every loss is a sum of contributions to the mean over all processes, over which advantages are normalised, too. With one
process every function here does nothing.

Objects travel as JSON in the memory of the host (gloo), tensors on the device that they are on (NCCL on GPUs).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from vlgym.errors import UserError

PATIENCE = timedelta(hours=2)  # the first process evaluates and makes the warm start while the others wait

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """One process of a run: its number (`rank`, from 0), and how many processes there are (`size`)."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """True if this process writes files and speaks."""
        return self.rank == 0

    @property
    def launcher(self) -> str:
        """The beginning of a command of as many processes, as a user would type it."""
        return "python" if self.size == 1 else f"torchrun --nproc-per-node {self.size}"


ALONE = World()


def announced() -> int:
    """Return the number of processes that torchrun announces in the environment; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", 1))


def join(device: str) -> World:
    """Join the process group that torchrun announces, or be alone. `cuda` is from here on the GPU of this process."""
    if announced() == 1:
        return ALONE
    if not dist.is_initialized():
        cuda = device.startswith("cuda")
        if cuda:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=PATIENCE)
    return World(dist.get_rank(), dist.get_world_size())


def share_of(count: int, parts: int, name: str = "--num-envs", what: str = "processes") -> int:
    """`count / parts`.

    Raises:
        UserError: it is not whole.
    """
    if count % parts:
        raise UserError(f"{name} {count} cannot be split evenly over {parts} {what}; take a multiple of {parts}.")
    return count // parts


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
    """Concatenate the rows of all processes, in rank order; all have as many."""
    if world.size == 1:
        return x
    parts = [torch.empty_like(x) for _ in range(world.size)]
    dist.all_gather(parts, x.contiguous())
    return torch.cat(parts)


def gather_objects(value: T, world: World) -> list[T]:
    """A JSON-able value of every process, in rank order; tuples come back as lists."""
    if world.size == 1:
        return [value]
    # Not all_gather_object, which unpickles what comes over the network.
    own = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(world.size)]
    dist.all_gather(sizes, torch.tensor([len(own)]))
    padded = [torch.zeros(max(map(int, sizes)), dtype=torch.uint8) for _ in sizes]
    dist.all_gather(padded, torch.nn.functional.pad(own, (0, len(padded[0]) - len(own))))
    return [json.loads(bytes(each[: int(size)].tolist())) for each, size in zip(padded, sizes, strict=True)]


def first_says(value: T, world: World) -> T:
    """The first process's value, in all of them."""
    return gather_objects(value if world.first else None, world)[0]  # type: ignore[return-value]


@torch.no_grad()
def take_over(tensors: Iterable[Tensor], world: World) -> None:
    """Give every process the first one's values, in place."""
    if world.size > 1:
        for tensor in tensors:
            dist.broadcast(tensor.detach(), 0)
            torch.autograd.graph.increment_version(tensor)  # by which engines notice new weights


def any_of(flag: bool, world: World) -> bool:
    """True if the flag is set in any process."""
    return any(gather_objects(flag, world))

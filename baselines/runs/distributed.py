"""Data parallelism over processes started by torchrun: every process plays its share of the environments, gradients are
summed.

    torchrun --nproc-per-node 2 -m baselines.vldac --env vlgym/NumberLine-v0

Several processes make the same update as one: all draw the same global minibatches and each works on those of its own
environments, advantages are normalised over all, and every loss is a sum of contributions to the global mean. With one
process every function here does nothing. How a process joins the others, on which device, and what is said when one of
them has ended: `joining.py`. Weights that are split over processes: `learning/sharded.py`.

Numbers and texts travel in the memory of the host (gloo), tensors on the device that they are on (NCCL on GPUs).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor

from vlgym.errors import UserError


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


@dataclass(frozen=True)
class Shares:
    """How many of something, such as environments, each process has.

    Attributes:
        counts: of every process, in rank order; process 0 has the first ones.
        rank: this process.
    """

    counts: tuple[int, ...]
    rank: int = 0

    @property
    def own(self) -> int:
        """How many this process has."""
        return self.counts[self.rank]

    @property
    def first(self) -> int:
        """The number of its first one, over all processes."""
        return sum(self.counts[: self.rank])

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts)

    def of(self, rows: Tensor) -> Tensor:
        """The rows of this process in a tensor of all processes' rows, in rank order."""
        return rows[self.first : self.first + self.own]


def split(count: int, world: World, unit: int = 1) -> Shares:
    """Share `count` things out, as evenly as it goes, in whole units; the first processes get those that are left over.

    Args:
        count: a multiple of `unit`.
        world: the processes.
        unit: how many belong together.
    """
    units, over = divmod(count // unit, world.size)
    return Shares(tuple((units + (rank < over)) * unit for rank in range(world.size)), world.rank)


def split_environments(count: int, world: World, unit: int = 1) -> Shares:
    """`split`, at least one unit for each process.

    Raises:
        UserError: there are fewer units than processes.
    """
    shares = split(count, world, unit)
    if shares.counts[-1] == 0:
        each = "" if unit == 1 else f" ({unit} belong together)"
        raise UserError(
            f"--num-envs {count}{each} is too few for {world.size} processes; take at least {unit * world.size}."
        )
    return shares


def sum_gradients(parameters: Iterable[Tensor], world: World) -> None:
    """Sum gradients over processes, in one flat message; a missing gradient counts as zero. Those of weights that are
    split over processes are their mean since the backward pass, by FSDP."""
    if world.size == 1:
        return
    with_grad = []
    for p in parameters:
        if not isinstance(p, DTensor):
            with_grad += [p] if p.requires_grad else []
        elif p.grad is not None:
            p.grad.mul_(world.size)
    if not with_grad:
        return
    flat = torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).flatten().float() for p in with_grad])
    dist.all_reduce(flat)
    at = 0
    for p in with_grad:
        p.grad = flat[at : at + p.numel()].view_as(p).to(p.dtype)
        at += p.numel()


def clip_gradients(parameters: Sequence[Tensor], limit: float) -> float:
    """Scale gradients down to a norm over all of them, split or not, and return the norm that they had."""
    norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
    return float(norm.full_tensor() if isinstance(norm, DTensor) else norm)


def gather(x: Tensor, world: World) -> Tensor:
    """Concatenate the rows of all processes, in rank order; they may have different numbers of rows."""
    if world.size == 1:
        return x
    counts = gather_counts(len(x), world)
    padded = x.new_zeros(max(counts), *x.shape[1:])
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(parts, padded)
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])


def gather_counts(count: int, world: World) -> tuple[int, ...]:
    """A number of every process, in rank order."""
    if world.size == 1:
        return (count,)
    parts = [torch.zeros(1, dtype=torch.int64) for _ in range(world.size)]
    dist.all_gather(parts, torch.tensor([count]))
    return tuple(int(part) for part in parts)


def gather_texts(text: str, world: World) -> list[str]:
    """The texts of all processes, in rank order."""
    if world.size == 1:
        return [text]
    data = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8) if text else torch.zeros(0, dtype=torch.uint8)
    counts = gather_counts(len(data), world)
    parts = gather(data, world).split(list(counts))
    return [part.numpy().tobytes().decode() for part in parts]


def first_says(text: str, world: World) -> str:
    """The text of the first process, in all of them."""
    return gather_texts(text if world.first else "", world)[0]


@torch.no_grad()
def take_over(tensors: Iterable[Tensor], world: World) -> None:
    """Give every process the first one's values, in place."""
    if world.size > 1:
        for tensor in tensors:
            dist.broadcast(tensor.detach(), 0)
            torch.autograd.graph.increment_version(tensor)  # by which engines notice new weights


def sum_values(values: Sequence[float], world: World) -> list[float]:
    """Sum of each number over the processes, in float64."""
    if world.size == 1:
        return list(values)
    x = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(x)
    return [float(value) for value in x]


def total(count: int, world: World) -> int:
    """Sum of a number over the processes."""
    return sum(gather_counts(count, world))


def most(count: int, world: World) -> int:
    """The largest of a number over the processes."""
    return max(gather_counts(count, world))


def any_of(flag: bool, world: World) -> bool:
    """Whether the flag is set in any process."""
    return any(gather_counts(int(flag), world))


def wait(world: World) -> None:
    """Wait for all processes, on the host: no device waits meanwhile."""
    gather_counts(0, world)


def here() -> World:
    """This process among those that have joined; alone where none have."""
    return World(dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else ALONE

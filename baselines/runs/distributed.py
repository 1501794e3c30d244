"""The processes of a run: device, threads, memory, signals, and data parallelism over them.

    torchrun --nproc-per-node 2 -m baselines.vldac --env vlgym/NumberLine-v1

Every process plays its share of the environments with its own sampler, takes its share of every
minibatch from them, and gradients are summed: a loss is a contribution to the mean over all.

Objects travel as JSON in the memory of the host (gloo), tensors on their device (NCCL on GPUs).
"""

import json
import os
import re
import resource
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from vlgym.errors import UserError, check_number, nearest
from vlgym.terminal import Terminated

# ---- device and threads --------------------------------------------------------------------------

MOST_THREADS = 1024
FREE_SHARE = 0.9  # of the host's free memory, that a limited block may take


def set_up_torch(threads: int, device: str) -> None:
    """Set torch up for a run, before it computes anything; `threads` 0 leaves its choice."""
    check_threads(threads)
    check_device(device)
    if threads:
        torch.set_num_threads(threads)
    # With several threads, the backward pass of an indexing sums in another order in every run.
    # On CUDA deterministic algorithms stay off: some kernels have no such form.
    torch.use_deterministic_algorithms(device == "cpu")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def check_threads(threads: int) -> None:
    """Raise `UserError` unless torch can have this many CPU threads."""
    check_number("--threads", threads, 0, MOST_THREADS, hint="0 leaves torch's choice.")


def choose_device(device: str) -> str:
    """Return the device; for "auto" CUDA where there is one, else MPS, else the CPU."""
    if device != "auto":
        return device
    other = "mps" if torch.backends.mps.is_available() else "cpu"
    return "cuda" if torch.cuda.is_available() else other


def device_in_words(device: str) -> str:
    """A device with its name and memory, or why it is the CPU."""
    if device.startswith("cuda"):
        card = torch.cuda.get_device_properties(torch.device(device))
        return f"{device} ({card.name}, {card.total_memory / 2**30:.0f} GiB)"
    better = choose_device("auto")
    none = "no CUDA or MPS device here" if better == "cpu" else f"--device {better} is here, too"
    return f"cpu ({none})" if device == "cpu" else device


def check_device(device: str) -> None:
    """Raise `UserError` unless there is such a device."""
    kind, _, number = device.partition(":")
    cuda = kind == "cuda" and (":" not in device or number.isdecimal())
    if not cuda and device not in ("cpu", "mps"):
        near = f"cuda:NUMBER.{nearest(device, ('auto', 'cpu', 'cuda', 'mps'))}"
        raise UserError(f"--device {device!r} is not one of auto, cpu, mps, cuda, {near}")
    if device == "cpu" or (device == "mps" and torch.backends.mps.is_available()):
        return
    if device == "mps":
        raise UserError("--device mps: there is no MPS device here. Use --device auto.")
    if not torch.cuda.is_available():
        why = f"torch {torch.__version__} is built for CPUs alone"
        if torch.version.cuda:
            why = f"torch {torch.__version__} finds none (`nvidia-smi` says why)"
        raise UserError(f"--device {device}: there is no CUDA device here; {why}. Use --device cpu.")
    if number and int(number) >= torch.cuda.device_count():
        known = f"cuda:0 to cuda:{torch.cuda.device_count() - 1}"
        raise UserError(f"--device {device}: this machine's CUDA devices are {known}.")


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory ran out, on an accelerator or of the host."""
    known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
    return known or "can't allocate memory" in str(error) or "not enough memory" in str(error)


@contextmanager
def memory_advice(advice: str) -> Iterator[None]:
    """Turn running out of memory in the block into a `UserError` that says what to try."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        first = str(error).split("\n")[0]
        raise UserError(f"Out of memory ({first}): {advice}") from error


@contextmanager
def host_limit(device: torch.device, processes: int = 1) -> Iterator[None]:
    """Let what exceeds this process's share of free memory fail in the block, as on a card.
    Linux would kill the process. Elsewhere than on a CPU under Linux nothing is limited."""
    if device.type != "cpu" or not sys.platform.startswith("linux"):
        yield
        return

    # A container's limit may be lower than the machine's.
    free = read_sizes("/proc/meminfo")["MemAvailable"]
    used = read_sizes("/proc/self/status")["VmData"]
    group = [Path(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current")]
    if all(path.is_file() for path in group):
        bound, own = (path.read_text(encoding="ascii").strip() for path in group)
        free = free if bound == "max" else min(free, int(bound) - int(own))
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = used + int(FREE_SHARE * free / processes)
    most = most if soft == resource.RLIM_INFINITY else min(most, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def read_sizes(path: str) -> dict[str, int]:
    """Return the bytes of each line `name: N kB` of a file under /proc."""
    lines = re.findall(r"^(\w+):\s+(\d+) kB$", Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    return {name: 1024 * int(size) for name, size in lines}


def peak_memory(device: torch.device) -> int:
    """Most bytes allocated on an accelerator, or by this process, since it began."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


# ---- signals -------------------------------------------------------------------------------------


@contextmanager
def interruptible() -> Iterator[dict[str, int]]:
    """Note the first Ctrl-C or SIGTERM (`flag["signal"]`, 0 before); a second one stops at once."""
    flag = {"signal": 0}

    def handle(number: int, frame: Any) -> None:
        if flag["signal"]:
            raise KeyboardInterrupt if number == signal.SIGINT else Terminated
        flag["signal"] = number
        print("\nstopping after this update; press Ctrl-C again to stop at once", flush=True)

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


# ---- data parallelism ----------------------------------------------------------------------------

PATIENCE = timedelta(hours=2)  # the first process evaluates while the others wait

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """One process of a run: its number (`rank`, from 0) of `size`."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """True if this process writes files and speaks."""
        return self.rank == 0


ALONE = World()


def announced() -> int:
    """The number of processes that torchrun announces; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", 1))


def join(device: str) -> World:
    """Join torchrun's process group, or be alone; `cuda` is then the GPU of this process."""
    if announced() == 1:
        return ALONE
    if not dist.is_initialized():
        cuda = device.startswith("cuda")
        if cuda:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=PATIENCE)
    return World(dist.get_rank(), dist.get_world_size())


def share_of(count: int, parts: int, name: str = "--num-envs", what: str = "processes") -> int:
    """Return `count / parts`; a `UserError` where it is not whole."""
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
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in with_grad]
    flat = torch.cat([gradient.flatten().float() for gradient in gradients])
    dist.all_reduce(flat)
    for p, part in zip(with_grad, flat.split([p.numel() for p in with_grad]), strict=True):
        p.grad = part.view_as(p).to(p.dtype)


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
    texts = (bytes(x[: int(size)].tolist()) for x, size in zip(padded, sizes, strict=True))
    return [json.loads(text) for text in texts]


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

"""A pretend accelerator: data stay on the host, but every tensor is noted to be on the host or on "cuda".

    with accelerator():
        torch.ones(3, device="cuda") + torch.ones(3)  # raises Misplaced, as CUDA would

It finds tensors that were left on the wrong device, the commonest reason why code that was only ever run on a CPU fails
on a GPU. It says nothing about kernels, numbers, speed or the recording of CUDA graphs (graphs are not recorded here).
Only the thread that enters the block is watched.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from baselines.engine import graphed
from baselines.runs import checkpoint

CUDA, HOST = torch.device("cuda", 0), torch.device("cpu")
FACTORIES = ("zeros", "ones", "full", "empty", "arange", "rand", "randn", "randint", "randperm", "eye", "linspace")
COPIES = ("copy_", "_to_copy", "set_", "_foreach_copy_")


class Misplaced(AssertionError):
    """Tensors of two devices met, or one was read where it is not."""


class Places:
    """Where each storage is: True on CUDA, False on the host, None open.

    Open are tensors that an operation of the library makes with another tensor's options; what is first copied into
    them says where they are.
    """

    def __init__(self) -> None:
        self.known: weakref.WeakKeyDictionary[Any, bool | None] = weakref.WeakKeyDictionary()

    def __getitem__(self, tensor: Tensor) -> bool | None:
        storage = _storage(tensor)
        return None if storage is None else self.known.get(storage, False)

    def __setitem__(self, tensor: Tensor, place: bool | None) -> None:
        storage = _storage(tensor)
        if storage is not None:
            self.known[storage] = place

    def of(self, tensors: Sequence[Tensor]) -> set[bool]:
        """The devices of some tensors; an operation takes single numbers of the host wherever it runs."""
        places = {self[x] for x in tensors if x.numel() and (x.dim() or self[x])}
        return {place for place in places if place is not None}


def _storage(tensor: Tensor) -> Any:
    try:
        return tensor.untyped_storage()
    except NotImplementedError:  # within torch.vmap
        return None


def _tensors(values: Any) -> list[Tensor]:
    return [x for x in tree_leaves(values) if isinstance(x, Tensor)]


def _names_cuda(device: Any) -> bool:
    return isinstance(device, str | torch.device) and torch.device(device).type == "cuda"


class Operations(TorchDispatchMode):
    """Checks the tensors that every operation takes, and places what it makes."""

    def __init__(self, places: Places) -> None:
        super().__init__()
        self.places = places

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        places, name, taken = self.places, function.overloadpacket.__name__, _tensors((args, kwargs))
        for group in self.groups(name, args, taken):
            if len(places.of(group)) > 1:
                shapes = ", ".join(f"{list(x.shape)} on {'cuda' if places[x] else 'the host'}" for x in group)
                raise Misplaced(f"{function}: {shapes}")
        out = function(*args, **(kwargs or {}))
        if name.startswith("_foreach_") and name.endswith("_"):
            # Below a dispatch mode these count up no versions, as they do without one: engines would miss a step.
            torch.autograd.graph.increment_version(_tensors(args[0]))
        if name == "copy_":
            if places[args[0]] is None:
                places[args[0]] = places[args[1]]
            return out
        place = None if all(places[x] is None for x in taken) else any(places[x] for x in taken)
        old = {_storage(x) for x in taken}
        for tensor in _tensors(out):
            if _storage(tensor) not in old:
                places[tensor] = place
        return out

    def groups(self, name: str, args: Any, taken: list[Tensor]) -> list[list[Tensor]]:
        """Tensors that must be on one device."""
        if name in COPIES:
            return []
        if name.startswith("_foreach_"):
            lists = [x for x in args if isinstance(x, list | tuple) and x and isinstance(x[0], Tensor)]
            return [list(group) for group in zip(*lists, strict=True)]
        if name in ("index", "index_put", "index_put_", "_index_put_impl_") and self.places[args[0]]:
            return [[args[0], *_tensors(args[2:])]]  # CUDA takes indices of the host
        return [taken]


class Calls(TorchFunctionMode):
    """What Python sees: devices of tensors, and tensors moved to or made on a device."""

    def __init__(self, places: Places, generators: list[Any]) -> None:
        super().__init__()
        self.places, self.generators = places, generators

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        places, kwargs = self.places, dict(kwargs or {})
        name, first = getattr(function, "__name__", ""), args[0] if args else None
        if function == Tensor.device.__get__:
            real = function(*args)
            return real if real.type == "meta" else CUDA if places[args[0]] else HOST
        if function == Tensor.is_cuda.__get__:
            return bool(places[args[0]])
        if isinstance(first, Tensor):
            if name in ("numpy", "__array__") and places[first]:
                raise Misplaced(f"{name} of a tensor on cuda")
            if name in ("to", "cpu"):
                return self.move(first, args[1:], kwargs, "cpu" if name == "cpu" else None)
        placed, on_cuda = kwargs.get("device") is not None, _names_cuda(kwargs.get("device"))
        generator, wanted = kwargs.get("generator"), on_cuda or (isinstance(first, Tensor) and places[first])
        if wanted and generator is not None and generator not in self.generators:
            raise Misplaced(f"{name}: a generator of the host for a tensor on cuda")
        if on_cuda:
            kwargs["device"] = HOST
        if name == "mm" and "out_dtype" in kwargs:  # a product that CUDA alone has
            return first.float() @ args[1].float()
        out = function(*args, **kwargs)
        if name == "__deepcopy__":
            places[out] = places[first]
        elif placed or name == "tensor" or (name in FACTORIES and not isinstance(first, Tensor)):
            for tensor in _tensors(out):
                if tensor.device.type != "meta":
                    places[tensor] = on_cuda
        return out

    def move(self, tensor: Tensor, args: Any, kwargs: Any, device: Any) -> Tensor:
        """`Tensor.to` in all its forms; what changes its device is copied."""
        rest: list[Any] = []
        for value in (*args, kwargs.pop("device", None)):
            if isinstance(value, Tensor):
                device, rest = value.device, [*rest, value.dtype]
            elif isinstance(value, str | torch.device):
                device = value
            elif isinstance(value, torch.dtype):
                rest.append(value)
        kwargs.pop("non_blocking", None)
        if device is not None and torch.device(device).type == "meta":
            return tensor.to(*rest, **kwargs, device=device)
        out = tensor.to(*rest, **kwargs) if rest or kwargs else tensor
        if device is None or _names_cuda(device) == bool(self.places[tensor]):
            return out
        if _storage(out) is _storage(tensor):
            out = out.clone()
        self.places[out] = _names_cuda(device)
        return out


@contextmanager
def accelerator() -> Iterator[None]:
    """Have a device "cuda" within the block."""
    places, generators = Places(), []
    host_generator, host_load, begin = torch.Generator, checkpoint.load_file, graphed.GraphedDecoding.__init__

    def generator(device: Any = "cpu") -> torch.Generator:
        made = host_generator()
        if _names_cuda(device):
            generators.append(made)
        return made

    def load(path: Any, device: Any = "cpu") -> dict[str, Tensor]:
        return {name: tensor.to(device) for name, tensor in host_load(path).items()}

    def without_graphs(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        self.capture = False

    with ExitStack() as stack:
        for owner, name, new in (
            (torch.cuda, "is_available", lambda: True),
            (torch.cuda, "device_count", lambda: 1),
            (
                torch.accelerator,
                "current_accelerator",
                lambda check_available=False: None,
            ),  # a CUDA build without a GPU
            (torch.cuda, "synchronize", lambda device=None: None),
            (torch.cuda, "max_memory_allocated", lambda device=None: 0),
            (torch.cuda, "reset_peak_memory_stats", lambda device=None: None),
            (torch, "Generator", generator),
            (checkpoint, "load_file", load),
            (graphed.GraphedDecoding, "__init__", without_graphs),
        ):
            stack.enter_context(mock.patch.object(owner, name, new))
        stack.enter_context(Operations(places))
        stack.enter_context(Calls(places, generators))
        yield

"""Checkpoints: tensors in safetensors, everything else in JSON, each written whole or not at all. No pickle, so loading
one runs no code. A list of their files with their checksums is written last, and compared before anything is read.

A checkpoint holds all that the next update depends on: weights, optimizer states, the exact states of the samplers'
generators, the environments' episodes and the counters. Nothing in the learners reads a global generator, so none is
saved.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from vlgym.errors import UserError, check_finite
from vlgym.files import (
    check_files,
    discard,
    list_folder,
    make_folder,
    measure_file,
    put_back,
    write_whole,
    written_file,
    written_whole,
)

STATE, TENSORS = "state.json", "tensors.safetensors"


def save_checkpoint(folder: Path, tensors: dict[str, Tensor], state: dict[str, Any], *, keep: int = 2) -> Path:
    """Write `folder/update-NNNNNN` (NNNNNN = `state["update"]`) and remove all but the newest `keep`. Tensors are of
    any type, `state` is JSON-able."""
    target = folder / f"update-{state['update']:06d}"
    make_folder(folder)
    _tidy(folder)
    with written_whole(target) as part:
        save_file(own_storage(tensors), part / TENSORS)
        write_whole(part / STATE, json.dumps(state))
    for old in checkpoints(folder)[:-keep]:
        remove_folder(old)
    return target


def remove_folder(folder: Path) -> None:
    """Delete a folder; a kill leaves no half of it that looks whole."""
    hidden = folder.with_name(f".{folder.name}.gone")
    discard(hidden)
    os.replace(folder, hidden)
    discard(hidden)


def own_storage(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as safetensors takes them: contiguous, and none a part of what another one lies in.

    Only such parts are copied, to the host; the rest stays where it is, and the library fetches one after the other.
    """
    seen: set[int] = set()
    ready = {}
    for name, tensor in tensors.items():
        plain, storage = tensor.detach(), tensor.untyped_storage()
        part = storage.nbytes() != plain.numel() * plain.element_size() or storage.data_ptr() in seen
        if tensor.numel():
            seen.add(storage.data_ptr())
        ready[name] = plain.cpu().clone(memory_format=torch.contiguous_format) if part else plain.contiguous()
    return ready


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(path for path in folder.glob("update-*") if list_folder(path))


def load_checkpoint(folder: Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the newest checkpoint, its tensors to a device, if all its files are what was written.

    Raises:
        UserError: there is none, or it is damaged.
    """
    _tidy(folder)
    found = checkpoints(folder)
    if not found:
        raise UserError(
            f"{folder} holds no checkpoint yet, so there is nothing to resume; give the same command without --resume."
        )
    newest = found[-1]
    try:
        check_files(newest)
        state = json.loads((newest / STATE).read_bytes())
        if not isinstance(state, dict) or state.get("update") != int(newest.name.removeprefix("update-")):
            raise ValueError(f"{STATE} is not of update {newest.name.removeprefix('update-')}")
        return check_finite(f"The checkpoint {newest}", load_file(newest / TENSORS, device=device)), state
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        other = f"to go on from {found[-2].name}" if len(found) > 1 else "and begin the run again"
        raise UserError(f"The checkpoint {newest} is damaged ({error}). Remove that folder {other}.") from None


def load_tensors(path: Path, expected: Mapping[str, Any], device: str = "cpu") -> dict[str, Tensor]:
    """Read the tensors of a file to a device; `expected` are its size and checksum, as `save_tensors` returned them.

    Raises:
        UserError: it is missing or damaged.
    """
    try:
        if measure_file(path) != expected:
            raise ValueError("it holds other bytes than were written")
        return check_finite(str(path), load_file(path, device=device))
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(f"{path} is damaged ({error}). Begin the run again, in a new folder.") from None


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Write a file of tensors, whole or not at all; return its size and checksum."""
    with written_file(path) as part:
        save_file(tensors, part)
    return measure_file(path)


# -- modules, optimizers and generators as tensors ---------------------------------------------------------------------


def module_tensors(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers under `prefix.`; weights that share memory are stored once."""
    seen: set[int] = set()
    named = {}
    for name, tensor in module.state_dict().items():
        if tensor.data_ptr() not in seen or tensor.numel() == 0:
            seen.add(tensor.data_ptr())
            named[f"{prefix}.{name}"] = tensor
    return named


def load_module(prefix: str, module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy `prefix.*` into a module, in place.

    Raises:
        UserError: the checkpoint is of another model.
    """
    own = module_tensors(prefix, module)
    saved = {name: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}
    different = sorted(set(own) ^ set(saved)) or sorted(n for n in own if own[n].shape != saved[n].shape)
    if different:
        raise UserError(
            f"The checkpoint is of another model: {different[0]} differs. Resume with the model that began the run."
        )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(saved[name])


def optimizer_tensors(prefix: str, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's per-parameter state (moments, step counts) under `prefix.`."""
    state = optimizer.state_dict()["state"]
    return {
        f"{prefix}.{index}.{key}": torch.as_tensor(value)
        for index, entry in state.items()
        for key, value in entry.items()
    }


def load_optimizer(prefix: str, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Restore what `optimizer_tensors` gave; the parameter groups keep this run's settings."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(f"{prefix}."):
            index, key = name[len(prefix) + 1 :].split(".", 1)
            state.setdefault(int(index), {})[key] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _tidy(folder: Path) -> None:
    """Put a folder in order in which a process was killed at work."""
    for replaced in folder.glob(".*.old"):
        put_back(folder / replaced.name.removeprefix(".").removesuffix(".old"))
    for leftover in folder.glob(".update-*"):
        discard(leftover)

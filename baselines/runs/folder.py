"""The folder of a run: the record of how the run was made, and its checkpoints.

Tensors are in safetensors, everything else in JSON, each written whole or not at all. No pickle, so
loading one runs no code. The checksums of a checkpoint's files are compared before any is read.

A checkpoint holds all that the next update depends on: weights, optimizer states, generators, the
environments' episodes and the counters. Nothing in the learners reads a global generator.
"""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from vlgym.env.prompts import PromptBuilder
from vlgym.env_groups import LOCAL, EnvGroup
from vlgym.errors import UserError, check_finite, check_writable
from vlgym.files import (
    check_files,
    discard,
    list_folder,
    make_folder,
    measure_file,
    put_back,
    seal,
    unseal,
    write_whole,
    written_file,
    written_whole,
)
from vlgym.play.trajectory import describe_run, is_sealed
from vlgym.registry import get_registry

# ---- record --------------------------------------------------------------------------------------

RUN_FILE = "run.json"
RECORDED_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors")


def environment_ids(text: str) -> list[str]:
    """Split `a,b` into known environment ids, or raise `UserError`."""
    ids = [part.strip() for part in text.split(",") if part.strip()]
    if not ids:
        raise UserError("--env names no environment; for example --env vlgym/NumberLine-v1. All ids: vlgym list")
    if len(set(ids)) < len(ids):
        raise UserError(f"--env {text} names an environment twice; each id once, they are mixed evenly.")
    for env_id in ids:
        get_registry().get(env_id)
    return ids


def check_new(out: Path, mark: str = RUN_FILE) -> None:
    """Refuse a folder that cannot be written to, or that holds more than a run without a checkpoint.
    `mark` is the file that says what a folder of this kind holds."""
    check_writable("--out", out)
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file; choose a folder.")
    known = mark == RUN_FILE and (out / RUN_FILE).is_file()
    begun = known and not any((out / "checkpoints").glob("update-*"))
    if not list_folder(out) or (begun and not (out / "model").exists()):
        return
    content = str(read_run_record(out).get("title", "another run")) if known else "other files"
    raise UserError(
        f"--out {out} already holds {content}; nothing was overwritten. "
        f"{f'Continue it with --resume --out {out}, choose' if known else 'Choose'} another folder, or "
        "remove that one."
    )


def write_json(path: Path, data: Any) -> None:
    """Write indented JSON, whole or not at all; paths become strings."""
    write_whole(path, encode_json(data))


def encode_json(data: Any) -> bytes:
    """Return the bytes that `write_json` writes."""
    return (json.dumps(data, indent=1, default=str) + "\n").encode()


def write_record(path: Path, data: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Write an object, or a list of objects, each with its checksum, as `write_json` does."""
    write_json(path, seal(data) if isinstance(data, Mapping) else [seal(each) for each in data])


def read_checkpoint_record(path: Path) -> Any:
    """Read what `write_record` wrote, without the checksums; a `UserError` where it is damaged."""
    try:
        data = json.loads(path.read_bytes())
        return [unseal(each) for each in data] if isinstance(data, list) else unseal(data)
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from None


def read_run_record(out: Path) -> dict[str, Any]:
    """Read a run's record; a `UserError` where there is none, or it cannot be read."""
    path = out / RUN_FILE
    try:
        record = json.loads(path.read_bytes())
        if isinstance(record, dict):
            record = unseal(record, required=is_sealed(record))
        if not isinstance(record, dict) or not all(isinstance(record.get(n), dict) for n in ("config", "environments")):
            raise ValueError("it is no record of a run")
        return record
    except FileNotFoundError:
        raise UserError(f"{out} holds no run ({RUN_FILE} is missing); start one without --resume.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}. Start a new run in another --out.") from None


def describe(
    title: str, config: Mapping[str, Any], env_ids: list[str], env_kwargs: Mapping[str, Any],
    *, builder: PromptBuilder | None = None, policy: Any = None, group: EnvGroup = LOCAL,
) -> dict[str, Any]:  # fmt: skip
    """The record of a run: environments (`describe_run`), configuration, versions, machine."""
    envs = [group.make(env_id, **env_kwargs) for env_id in env_ids]
    record = describe_run(envs, builder=builder, policy=policy, title=title, config=config)
    for env in envs:
        env.close()
    record["versions"] |= {package: metadata.version(package) for package in RECORDED_PACKAGES}
    record["machine"] = {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()}
    return record


def check_same(saved: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise `UserError` for another learner's run, or environments that have changed since."""
    if saved["config"].get("algorithm") != now["config"].get("algorithm"):
        raise UserError(
            f"That run is of {saved['config'].get('algorithm')}, not of {now['config'].get('algorithm')}; "
            "resume it with its own command."
        )
    if saved.get("format") != now["format"]:
        raise UserError(
            f"That run was recorded by another version of vlgym (record format {saved.get('format')}, "
            f"here {now['format']}). Resume it with that version, or start a new run."
        )
    known = saved["environments"]
    changed = [name for name, entry in now["environments"].items() if known.get(name) != entry]
    if changed:
        raise UserError(
            f"Arguments, prompt, parser or spec of {', '.join(changed)} changed since that run began; "
            "its results would mix two versions. Start a new run."
        )


# ---- checkpoints ---------------------------------------------------------------------------------

STATE, TENSORS = "state.json", "tensors.safetensors"


def save_checkpoint(folder: Path, tensors: dict[str, Tensor], state: dict[str, Any], *, keep: int = 2) -> Path:
    """Write `folder/update-NNNNNN` (`state["update"]`) and remove all but the newest `keep`."""
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
    """The tensors as safetensors takes them: contiguous, parts of others copied to the host."""
    places: set[int] = set()
    ready = {}
    for name, tensor in tensors.items():
        plain, storage = tensor.detach(), tensor.untyped_storage()
        part = storage.nbytes() != plain.numel() * plain.element_size() or storage.data_ptr() in places
        if tensor.numel():
            places.add(storage.data_ptr())
        if part:
            plain = plain.cpu().clone(memory_format=torch.contiguous_format)
        ready[name] = plain.contiguous()
    return ready


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(path for path in folder.glob("update-*") if list_folder(path))


def load_checkpoint(folder: Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the newest checkpoint; a `UserError` where none is, or it is damaged."""
    _tidy(folder)
    saved = checkpoints(folder)
    if not saved:
        advice = "give the same command without --resume"
        raise UserError(f"{folder} holds no checkpoint yet, so there is nothing to resume; {advice}.")

    # What is compared and read is the newest; an older one is only advised.
    newest = saved[-1]
    try:
        check_files(newest)
        state = json.loads((newest / STATE).read_bytes())
        if not isinstance(state, dict) or state.get("update") != int(newest.name.removeprefix("update-")):
            raise ValueError(f"{STATE} is not of update {newest.name.removeprefix('update-')}")
        return check_finite(f"The checkpoint {newest}", load_file(newest / TENSORS, device=device)), state
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        other = f"to go on from {saved[-2].name}" if len(saved) > 1 else "and begin the run again"
        raise UserError(f"The checkpoint {newest} is damaged ({error}). Remove that folder {other}.") from None


def load_tensors(path: Path, expected: Mapping[str, Any], device: str = "cpu") -> dict[str, Tensor]:
    """Read what `save_tensors` wrote and returned; a `UserError` where it is damaged."""
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


# -- modules, optimizers and generators as tensors -------------------------------------------------


def module_tensors(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers under `prefix.`, shared ones once."""
    places: set[int] = set()
    named = {}
    for name, tensor in module.state_dict().items():
        if tensor.data_ptr() not in places or tensor.numel() == 0:
            places.add(tensor.data_ptr())
            named[f"{prefix}.{name}"] = tensor
    return named


def load_module(prefix: str, module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy `prefix.*` into a module, in place; a `UserError` where they are of another model."""
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
    named = ((f"{prefix}.{index}.{key}", x) for index, entry in state.items() for key, x in entry.items())
    return {name: torch.as_tensor(x) for name, x in named}


def load_optimizer(prefix: str, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Restore `optimizer_tensors`; the parameter groups keep this run's settings."""
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

"""The part of a checkpoint that holds weights and moments split over processes: written and read by all of them at
once, through `torch.distributed.checkpoint`, each its own part, and read again by any number of processes.

The files are safetensors (torch's storage for Hugging Face's format, one file per process, which says in its header
where its parts belong). Torch's usual storage keeps its index as a pickle, which this project does not read.
Why: docs/decisions/0008-sharded-checkpoints-without-pickle.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.tensor import DTensor

from vlgym.errors import UserError

SHARDS = "shards"


def parts_of(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those tensors that are split over the processes."""
    return {name: tensor for name, tensor in tensors.items() if isinstance(tensor, DTensor)}


def write_parts(folder: Path, parts: Mapping[str, Tensor]) -> None:
    """Write `folder/shards`; all processes together, and when one of them returns all have written."""
    writer = dcp.HuggingFaceStorageWriter(str(folder / SHARDS), save_distributed=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(dict(parts), storage_writer=writer)


def read_parts(
    folder: Path, own: Mapping[str, Tensor], optimizers: Mapping[str, torch.optim.Optimizer]
) -> dict[str, Tensor]:
    """Read `folder/shards`; all processes together. Returns new tensors, split as those of this run.

    Args:
        folder: a checkpoint.
        own: split weights by name, as they are to be.
        optimizers: by name; their moments are split as their parameters are.

    Raises:
        UserError: the checkpoint holds no such parts, or others.
    """
    if not (folder / SHARDS).is_dir():
        raise UserError(f"The checkpoint {folder} holds whole weights; it was saved without --shard full.")
    reader = dcp.HuggingFaceStorageReader(str(folder / SHARDS))
    try:
        saved: dict[str, Any] = dict(reader.read_metadata().state_dict_metadata)
        wanted: dict[str, Any] = {name: torch.empty_like(tensor) for name, tensor in parts_of(own).items()}
        for kind, optimizer in optimizers.items():
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            prefix = f"optimizer.{kind}."
            for name in saved:
                if name.startswith(prefix):
                    wanted[name] = torch.zeros_like(parameters[int(name.removeprefix(prefix).split(".")[0])]).detach()
        different = sorted(set(wanted) ^ set(saved)) or [n for n in wanted if wanted[n].shape != saved[n].size]
        if different:
            raise UserError(
                f"The checkpoint is of another model: {different[0]} differs. Resume with the model that began the run."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dcp.load(wanted, storage_reader=reader)
    except (OSError, IndexError, ValueError, dcp.CheckpointException) as error:
        raise UserError(
            f"The checkpoint {folder} is damaged ({str(error).strip().splitlines()[0]}). Remove that folder to go on "
            "from the one before."
        ) from error
    return wanted

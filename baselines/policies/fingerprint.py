"""A hash of a model, which identifies it in a run's record."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

READ = (".safetensors", ".bin", ".pt", ".json", ".jinja", ".model", ".txt")
"""Kinds of files that a model is read from; others, such as a README, may change."""


def hash_model(name: str, model: Any) -> str:
    """Return what tells a model from others: 16 hexadecimal digits, after what they are of.

    Args:
        name: a folder: its files are read; a Hub name: the commit is known; `tiny`: its weights are read.
        model: the library's model.
    """
    folder = Path(name)
    if folder.is_dir():
        return f"files {_hash_files(folder)}"
    commit = getattr(model.config, "_commit_hash", None)
    return f"commit {commit}" if commit else f"weights {_hash_weights(model)}"


def _hash_files(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in READ:
            with path.open("rb") as file:
                digest.update(f"{path.name}\n{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def _hash_weights(model: Any) -> str:
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(key.encode() + tensor.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]

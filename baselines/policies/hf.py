"""The policy `hf:PATH-OR-NAME`: a model to evaluate, through its engine.

A turn gets the same random numbers whoever else is in the batch. A run that was interrupted and resumed, or played with
another number of environments side by side, so gives the same replies, as far as the arithmetic of another batch gives
the same numbers. The draws of `baselines.engine.engine.ModelPolicy`, the learners' policy, depend on the batch.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vlgym.files import list_folder, measure_file
from vlgym.parsers import make_stop
from vlgym.registry.making import unwrap
from vlgym.types import Reply, Turn, Usage

from ..engine.engine import Engine
from ..models.folders import TrainedLimits


@dataclass(frozen=True)
class Sampling:
    """Settings for choosing tokens."""

    seed: int
    temperature: float  # logits are divided by it before a draw; 0 takes the likeliest tokens
    max_new_tokens: int  # longest reply, its end-of-turn token included

    def draws(self, turns: Sequence[Turn]) -> Tensor:
        """Random numbers in [0, 1), [max_new_tokens, B] float32. Those of a turn depend on the seed and on environment
        id, episode seed, repeat and number of the turn alone; a longer limit only adds to them."""
        if self.temperature == 0:
            return torch.zeros(self.max_new_tokens, len(turns))
        keys = (f"{self.seed}\n{turn.env_id}\n{turn.seed}\n{turn.repeat}\n{turn.turn}" for turn in turns)
        seeds = (int.from_bytes(hashlib.sha256(key.encode()).digest()) for key in keys)
        rows = [np.random.default_rng(seed).random(self.max_new_tokens, dtype=np.float32) for seed in seeds]
        return torch.from_numpy(np.stack(rows, axis=1))


class EnginePolicy:
    """Answers with an engine. A reply ends where the parser of its turn's environment has what it asked for."""

    concurrency = 16
    """Episodes at once, where the user does not say: enough that a batch is well used, few enough for a large model."""

    def __init__(
        self, engine: Engine, sampling: Sampling, *, name: str, limits: TrainedLimits, weights: str = ""
    ) -> None:
        self.engine, self.sampling, self.name, self.limits, self.weights = engine, sampling, name, limits, weights

    @property
    def sees(self) -> bool:
        """True if the model reads pictures."""
        return self.engine.family.reads_pictures

    def check(self, pictures: bool = True) -> None:
        """Raise `UserError` where prompts show pictures to a model that reads none."""
        self.engine.family.check_pictures(pictures)

    def describe(self) -> dict[str, Any]:
        """Return the settings, other than the prompt, that a reply depends on, for a run's record."""
        sampler = self.engine.describe()
        return {
            "name": self.name, "model": self.weights, "engine": self.engine.name, "dtype": sampler["dtype"],
            "device": self.engine.family.device.type, **self.engine.family.describe_images(),
            **({} if self.limits.system is None else {"system": self.limits.system}),
            "max_new_tokens": self.sampling.max_new_tokens, "temperature": self.sampling.temperature,
            "seed": self.sampling.seed if self.sampling.temperature else None,
            "torch": version("torch"), "transformers": version("transformers"),
        }  # fmt: skip

    def prefers(self) -> dict[str, Any]:
        """Prompt layout and reply style of the model's training."""
        limits = {name: getattr(self.limits, name) for name in ("history_turns", "history_images", "parser")}
        return {name: value for name, value in limits.items() if value is not None}

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer each environment's prompt."""
        if not turns:
            return []
        start = time.perf_counter()
        prompts = [self.engine.family.encode(turn.messages) for turn in turns]
        out = self.engine.sample(
            prompts, temperature=self.sampling.temperature,
            draws=self.sampling.draws(turns), stops=[make_stop(unwrap(turn.env)) for turn in turns],
        )  # fmt: skip
        seconds = time.perf_counter() - start
        lengths, cuts = out.mask.sum(-1).tolist(), out.cut.tolist()
        return [
            Reply(text, cut=cut, usage=Usage(len(prompt), length, seconds))
            for text, cut, prompt, length in zip(out.texts, cuts, prompts, lengths, strict=True)
        ]


def in_words_of_eval(line: str) -> str:
    """Name options as `vlgym eval` has them, in an error that names those of the learners."""
    line = line.replace("--model ", "hf:")
    line = re.sub(r"--(device|dtype|threads)(?: (?=[\w'-])|=)", r"--policy-arg \1=", line)
    return line.replace("--image-tokens", "image_tokens")


# ---- identity of a model ---------------------------------------------------------------------------------------------

READ = (".safetensors", ".bin", ".pt", ".json", ".jinja", ".model", ".txt")
"""Kinds of files that a model is read from; others, such as a README, may change."""


def hash_model(name: str, model: Any) -> str:
    """Return what tells a model from others: 16 hexadecimal digits of a folder's files, a Hub model's commit, or 16
    digits of the weights of `tiny`."""
    folder = Path(name)
    if folder.is_dir():
        return f"files {_hash_files(folder)}"
    commit = getattr(model.config, "_commit_hash", None)
    return f"commit {commit}" if commit else f"weights {_hash_weights(model)}"


def _hash_files(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in list_folder(folder):
        if path.is_file() and path.suffix in READ:
            digest.update(f"{path.name}\n{measure_file(path)['sha256']}\n".encode())
    return digest.hexdigest()[:16]


def _hash_weights(model: Any) -> str:
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(key.encode() + tensor.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]

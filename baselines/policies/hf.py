"""The policy `hf:PATH-OR-NAME`: a model to evaluate, through its engine.

A turn's random numbers do not depend on the batch, so a resumed run, or one with another number of
environments, gives the same replies, as far as the arithmetic of another batch gives the same
numbers. The draws of the learners' policy, `baselines.engine.engine.ModelPolicy`, depend on the
batch.
"""

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
        """Random numbers in [0, 1), [max_new_tokens, B] float32. A turn's depend on the seed, its
        environment id, episode seed, repeat and number alone; a longer limit only adds to them."""
        if self.temperature == 0:
            return torch.zeros(self.max_new_tokens, len(turns))
        keys = (f"{self.seed}\n{turn.env_id}\n{turn.seed}\n{turn.repeat}\n{turn.turn}" for turn in turns)
        seeds = (int.from_bytes(hashlib.sha256(key.encode()).digest()) for key in keys)
        generators = map(np.random.default_rng, seeds)
        rows = [each.random(self.max_new_tokens, dtype=np.float32) for each in generators]
        return torch.from_numpy(np.stack(rows, axis=1))


class EnginePolicy:
    """Answers with an engine. A reply ends where its environment's parser can read it."""

    concurrency = 16  # episodes at once: enough to use a batch well, few enough for a large model

    def __init__(
        self, engine: Engine, sampling: Sampling, *, name: str, limits: TrainedLimits, weights: str = ""
    ) -> None:
        self.engine, self.sampling, self.name = engine, sampling, name
        self.limits, self.weights = limits, weights

    @property
    def sees(self) -> bool:
        """True if the model reads pictures."""
        return self.engine.family.reads_pictures

    def check(self, pictures: bool = True) -> None:
        """Raise `UserError` where prompts show pictures to a model that reads none."""
        self.engine.family.check_pictures(pictures)

    def describe(self) -> dict[str, Any]:
        """Return the settings that a reply depends on besides the prompt, for a run's record."""
        sampler = self.engine.describe()
        return {
            "name": self.name, "model": self.weights, "engine": self.engine.name,
            "dtype": sampler["dtype"],
            "device": self.engine.family.device.type, **self.engine.family.describe_images(),
            **({} if self.limits.system is None else {"system": self.limits.system}),
            "max_new_tokens": self.sampling.max_new_tokens,
            "temperature": self.sampling.temperature,
            "seed": self.sampling.seed if self.sampling.temperature else None,
            "torch": version("torch"), "transformers": version("transformers"),
        }  # fmt: skip

    def prefers(self) -> dict[str, Any]:
        """Prompt layout and reply style of the model's training."""
        names = ("history_turns", "history_images", "parser")
        return {name: x for name in names if (x := getattr(self.limits, name)) is not None}

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

        # Each reply is billed the time of its batch.
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


READ = (".safetensors", ".bin", ".pt", ".json", ".jinja", ".model", ".txt")  # files of a model


def hash_model(name: str, model: Any) -> str:
    """Return the identity of a model: 16 hexadecimal digits of a folder's files, a Hub model's
    commit, or 16 digits of the weights of `tiny`."""
    digest, folder = hashlib.sha256(), Path(name)
    if commit := None if folder.is_dir() else getattr(model.config, "_commit_hash", None):
        return f"commit {commit}"
    if folder.is_dir():
        for path in list_folder(folder):
            if path.is_file() and path.suffix in READ:
                digest.update(f"{path.name}\n{measure_file(path)['sha256']}\n".encode())
        return f"files {digest.hexdigest()[:16]}"
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(key.encode() + tensor.detach().float().cpu().contiguous().numpy().tobytes())
    return f"weights {digest.hexdigest()[:16]}"

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

from vlgym.errors import UserError, check_choice, check_number
from vlgym.play.policies import Policy
from vlgym.registry.making import unwrap
from vlgym.types import Reply, Turn, Usage

from ..engine.engine import Engine
from ..engine.plain import make_engine
from ..models.folders import MOST_TEMPERATURE, NEW_TOKENS, Limits, read_limits
from ..models.load import DTYPES, HINT, load_family
from ..runs.threads import set_up_torch


@dataclass(frozen=True)
class Sampling:
    """Settings for choosing tokens.

    Attributes:
        seed: of the random numbers.
        temperature: what logits are divided by before a draw; 0 takes the likeliest tokens.
        max_new_tokens: longest reply, its end-of-turn token included.
    """

    seed: int
    temperature: float
    max_new_tokens: int

    def draws(self, turns: Sequence[Turn]) -> Tensor:
        """Random numbers in [0, 1), [max_new_tokens, B] float32. Those of a turn depend on the seed and on environment
        id, episode seed, repeat and number of the turn alone; a longer limit only adds to them.
        """
        if self.temperature == 0:
            return torch.zeros(self.max_new_tokens, len(turns))
        rows = [self._generator(turn).random(self.max_new_tokens, dtype=np.float32) for turn in turns]
        return torch.from_numpy(np.stack(rows, axis=1))

    def _generator(self, turn: Turn) -> np.random.Generator:
        key = f"{self.seed}\n{turn.env_id}\n{turn.seed}\n{turn.repeat}\n{turn.turn}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()))


CONCURRENCY = 16
"""Episodes at once, where the user does not say: enough that a batch is well used, few enough for a large model."""


class EnginePolicy:
    """Answers with an engine. A reply ends where the parser of its turn's environment has what it asked for.

    Args:
        engine: the model.
        sampling: how tokens are chosen; its token limit is the engine's.
        name: as reports show it.
        limits: the model's training; its prompt layout is what the policy prefers.
        weights: which model it is, for a run's record.
    """

    sees = True
    concurrency = CONCURRENCY

    def __init__(self, engine: Engine, sampling: Sampling, *, name: str, limits: Limits, weights: str = "") -> None:
        self.engine, self.sampling, self.name, self.limits, self.weights = engine, sampling, name, limits, weights

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
        found = {name: getattr(self.limits, name) for name in ("history_turns", "history_images", "parser")}
        return {name: value for name, value in found.items() if value is not None}

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer each environment's prompt."""
        if not turns:
            return []
        start = time.perf_counter()
        prompts = [self.engine.family.encode(turn.messages) for turn in turns]
        out = self.engine.sample(
            prompts, temperature=self.sampling.temperature,
            draws=self.sampling.draws(turns), parsers=[(unwrap(turn.env).parser,) for turn in turns],
        )  # fmt: skip
        seconds = time.perf_counter() - start
        lengths, cuts = out.mask.sum(-1).tolist(), out.cut.tolist()
        return [
            Reply(text, cut=cut, usage=Usage(len(prompt), length, seconds))
            for text, cut, prompt, length in zip(out.texts, cuts, prompts, lengths, strict=True)
        ]


ENGINES = ("auto", "generate")


def make_policy(
    name: str,
    *,
    seed: int,
    temperature: float | None,
    max_tokens: int | None,
    device: str,
    dtype: str,
    image_tokens: int | None,
    threads: int,
    engine: str,
) -> Policy:
    """Load a model as a policy; arguments are those of `baselines.plugin.make_hf`.

    Raises:
        UserError: an option is out of range, or the model cannot be loaded.
    """
    if not name:
        raise UserError(f"hf: names no model. {HINT} For example: --policy hf:runs/demo/model")
    check_number("--seed", seed, 0)
    if temperature is not None:
        check_number("--temperature", temperature, 0.0, MOST_TEMPERATURE, hint="0 takes the likeliest tokens.")
    if max_tokens is not None:
        check_number("--max-tokens", max_tokens, 1)
    if image_tokens is not None:
        check_number("--policy-arg image_tokens", image_tokens, 1)
    check_choice("--policy-arg engine", engine, ENGINES)
    check_choice("--policy-arg dtype", dtype, DTYPES)
    if name == "tiny" and engine == "generate":
        raise UserError("hf:tiny is built here, so engine=generate cannot load it; it can play a saved tiny model.")
    try:
        limits, plain = read_limits(name), engine == "generate"
        set_up_torch(threads, device)
        heat = temperature if temperature is not None else limits.temperature or 1.0
        sampling = Sampling(seed, heat, max_tokens or limits.max_new_tokens or NEW_TOKENS)
        family = load_family(
            name, image_tokens=image_tokens or (None if plain else limits.image_tokens), seed=seed, dtype=dtype,
            device=device, system=limits.system, plain=plain,
        )  # fmt: skip
        loaded = make_engine(family, max_new_tokens=sampling.max_new_tokens)
        return EnginePolicy(loaded, sampling, name=f"hf:{name}", limits=limits, weights=hash_model(name, family.model))
    except UserError as error:
        raise type(error)(in_words_of_eval(str(error))) from None


def in_words_of_eval(line: str) -> str:
    """Name options as `vlgym eval` has them, in an error that names those of the learners."""
    line = line.replace("--model ", "hf:")
    line = re.sub(r"--(device|dtype|threads)(?: (?=[\w'-])|=)", r"--policy-arg \1=", line)
    return line.replace("--image-tokens", "image_tokens")


# ---- identity of a model ---------------------------------------------------------------------------------------------

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

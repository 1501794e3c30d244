"""From a model's name and options to a policy, with errors in the words of `vlgym eval`."""

from __future__ import annotations

import re
from typing import Any

from vlgym.errors import UserError, check_choice, check_number
from vlgym.policies import Policy

from ..engine.engine import Engine
from ..models.adapter import is_adapter
from ..models.limits import MOST_TEMPERATURE, NEW_TOKENS, read_limits
from ..models.load import DTYPES, FAMILIES, find_model, load_family
from ..runs.threads import set_up_torch
from .engine_policy import EnginePolicy
from .fingerprint import hash_model
from .generate_policy import GeneratePolicy
from .sampling import Sampling

ENGINES = ("auto", "engine", "generate")
HINT = "Choose tiny (built offline), a folder with a config.json, or the Hub name of a model that chats about images."


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
    try:
        limits = read_limits(name)
        ours, config, source = _choose(name, engine)
        set_up_torch(threads, device, deterministic=ours)
        heat = temperature if temperature is not None else limits.temperature or 1.0
        sampling = Sampling(seed, heat, max_tokens or limits.max_new_tokens or NEW_TOKENS)
        if ours:
            budget = image_tokens or limits.image_tokens
            family = load_family(name, image_tokens=budget, seed=seed, dtype=dtype, device=device, system=limits.system)
            loaded = Engine(family, max_new_tokens=sampling.max_new_tokens)
            return EnginePolicy(
                loaded, sampling, name=f"hf:{name}", limits=limits, weights=hash_model(name, family.model)
            )
        if image_tokens is not None:
            raise UserError(
                f"hf:{name}: image_tokens={image_tokens} is an option of our own engine; here the model's own "
                "processor sizes its images. Leave image_tokens out."
            )
        return GeneratePolicy.load(name, config, source, sampling, limits=limits, device=device, dtype=dtype, hint=HINT)
    except UserError as error:
        raise type(error)(in_words_of_eval(str(error))) from None


def _choose(name: str, engine: str) -> tuple[bool, Any, dict[str, Any]]:
    """Whether our engine plays the model; else also its configuration and where it is loaded from."""
    if name == "tiny":
        if engine == "generate":
            raise UserError("hf:tiny is built here, so engine=generate cannot load it; it can play a saved tiny model.")
        return True, None, {}
    if engine == "engine" or is_adapter(name):
        return True, None, {}
    config, source = find_model(name, HINT)
    return engine == "auto" and config.model_type in FAMILIES, config, source


def in_words_of_eval(line: str) -> str:
    """Name options as `vlgym eval` has them, in an error that names those of the learners."""
    line = line.replace("--model ", "hf:")
    line = re.sub(r"--(device|dtype|threads)(?: (?=[\w'-])|=)", r"--policy-arg \1=", line)
    return line.replace("--image-tokens", "image_tokens")

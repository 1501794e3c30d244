"""From a model's name and options to a policy, with errors in the words of `vlgym eval`."""

from __future__ import annotations

import re

from vlgym.errors import UserError, check_choice, check_number
from vlgym.policies import Policy

from ..engine.plain import make_engine
from ..models.limits import MOST_TEMPERATURE, NEW_TOKENS, read_limits
from ..models.load import DTYPES, HINT, load_family
from ..runs.threads import set_up_torch
from .engine_policy import EnginePolicy
from .fingerprint import hash_model
from .sampling import Sampling

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
        set_up_torch(threads, device, deterministic=True)
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

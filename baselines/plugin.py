"""The core's plugin for the policy `hf:PATH-OR-NAME`, which imports torch when it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from vlgym import hookimpl
from vlgym.errors import UserError, check_choice, check_number

from . import describe_missing, find_missing

if TYPE_CHECKING:
    from vlgym.play.policies import Policy


@hookimpl
def vlgym_policies() -> Mapping[str, Callable[..., Policy]]:
    return {"hf": make_hf}


def make_hf(
    name: str, *, seed: int = 0, temperature: float | None = None, max_tokens: int | None = None, device: str = "cpu",
    dtype: str = "float32", image_tokens: int | None = None, threads: int = 0, engine: str = "auto",
) -> Policy:  # fmt: skip
    """Load a model as a policy.

    Args:
        name: a folder, the Hub name of a chat model, `tiny` (untrained), or `smollm2`. A language
            model plays in words.
        seed: of the sampler.
        temperature: divisor of logits; 0 takes the likeliest token; default the training's, else 1.
        max_tokens: longest reply in tokens; default as in the model's training, else 128.
        device: a torch device; auto is CUDA where there is one, else MPS, else the CPU.
        dtype: `float32` or `bfloat16`.
        image_tokens: most tokens per image, for the families with a fast path. Default as in the
            model's training, else its processor's own, or 16 for tiny.
        threads: CPU threads of torch; 0 leaves torch's choice.
        engine: `auto` takes the fast path where there is one, `generate` the library's `generate`.

    Raises:
        UserError: packages are missing, an option is out of range, or the model cannot be loaded.
    """
    if missing := find_missing():
        raise UserError(describe_missing(missing, f"The policy hf:{name} needs"))
    from .engine.engine import make_engine
    from .models.folders import MOST_TEMPERATURE, NEW_TOKENS, read_limits
    from .models.load import DTYPES, HINT, load_family
    from .policies.hf import EnginePolicy, Sampling, hash_model, in_words_of_eval
    from .runs.distributed import choose_device, set_up_torch

    # Options are refused under the names that the core's command has for them.
    if not name:
        raise UserError(f"hf: names no model. {HINT} For example: --policy hf:runs/demo/model")
    check_number("--seed", seed, 0)
    if temperature is not None:
        check_number("--temperature", temperature, 0.0, MOST_TEMPERATURE, hint="0 takes the likeliest tokens.")
    if max_tokens is not None:
        check_number("--max-tokens", max_tokens, 1)
    if image_tokens is not None:
        check_number("--policy-arg image_tokens", image_tokens, 1)
    check_choice("--policy-arg engine", engine, ("auto", "generate"))
    check_choice("--policy-arg dtype", dtype, DTYPES)
    if name == "tiny" and engine == "generate":
        raise UserError("hf:tiny is built here, so engine=generate cannot load it; it can play a saved tiny model.")

    # A saved model plays as it was trained, where no option says otherwise.
    try:
        limits, plain = read_limits(name), engine == "generate"
        device = choose_device(device)
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


make_hf.sees = True  # type: ignore[attr-defined]  # `vlgym eval --dry-run` reads it and loads no model

"""The plugin by which the core finds what this package brings it: the policy `hf:PATH-OR-NAME`.

Imports neither torch nor transformers before the policy is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from vlgym import hookimpl
from vlgym.errors import UserError

from . import describe_missing, find_missing

if TYPE_CHECKING:
    from vlgym.play.policies import Policy


@hookimpl
def vlgym_policies() -> Mapping[str, Callable[..., Policy]]:
    return {"hf": make_hf}


def make_hf(
    name: str,
    *,
    seed: int = 0,
    temperature: float | None = None,
    max_tokens: int | None = None,
    device: str = "cpu",
    dtype: str = "float32",
    image_tokens: int | None = None,
    threads: int = 0,
    engine: str = "auto",
) -> Policy:
    """Load a model as a policy.

    Args:
        name: a folder, the Hub name of a model that chats about images, or `tiny` (untrained).
        seed: of the sampler.
        temperature: what logits are divided by before a token is drawn; 0 takes the likeliest; default as in the
            model's training, 1 where that is not known.
        max_tokens: longest reply in tokens; default as in the model's training, 128 where that is not known.
        device: a torch device.
        dtype: `float32` or `bfloat16`.
        image_tokens: most tokens per image, for the families with a fast path: the upper bound of the model's own
            processor. Default as in the model's training, else the processor's own, or 16 for tiny.
        threads: CPU threads of torch; 0 leaves torch's choice.
        engine: `auto` takes the fast path of the Qwen families that have one; `generate` takes the library's
            `generate` for them too.

    Raises:
        UserError: packages are missing, an option is out of range, or the model cannot be loaded.
    """
    if missing := find_missing():
        raise UserError(describe_missing(missing, f"The policy hf:{name} needs"))
    from .policies.hf import make_policy

    return make_policy(
        name, seed=seed, temperature=temperature, max_tokens=max_tokens, device=device, dtype=dtype,
        image_tokens=image_tokens, threads=threads, engine=engine,
    )  # fmt: skip


make_hf.sees = True  # type: ignore[attr-defined]  # `vlgym eval --dry-run` reads it and loads no model

"""Fit the passes of an update to the device: before the first rollout the costliest one is tried, and halved until
memory suffices.

The trial is a real backward pass of the real model over replies of full length to the longest prompt, all of them taken
to be different, while as much memory is held as optimizer, keys and values will take later. Nothing is learnt from it:
no optimizer steps, no random number is drawn, gradients and caches are dropped, so what comes after is what would have
come without it. The size of the passes changes gradients by rounding alone.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch

from vlgym.errors import UserError

from ..engine.engine import Engine
from ..models.family import ImageInput, Prompt
from ..models.limits import NEW_TOKENS
from ..runs import distributed
from ..runs.distributed import World
from .config import RunConfig
from .environments import Environments
from .memory import gib, rows_of_pass, standing_items
from .weights import Weights, engines
from .worst_case import longest_prompt

C = TypeVar("C", bound=RunConfig)


def fit_passes(config: C, weights: Weights, envs: Environments, world: World) -> C:
    """Return the configuration with `micro_batch` or `micro_tokens` as large as fits, at most what was asked for.

    Args:
        config: resolved; `fit` says whether anything is tried.
        weights: of the run.
        envs: the run's environments; others are made to find the longest prompt.
        world: the processes of the run; all take the smallest that one of them found.

    Raises:
        UserError: not even a pass over one reply fits.
    """
    if config.fit == "off" or (config.fit == "auto" and config.device == "cpu") or config.sharded:
        return config  # split weights: a process whose memory runs out in a pass would leave the others waiting
    reply = config.max_new_tokens or weights.scorer.max_new_tokens or NEW_TOKENS
    prompt = longest_prompt(
        envs.ids, weights.family, new_tokens=reply, env_kwargs=envs.kwargs, builder=envs.builder,
        on_failure=envs.failures.append, group=envs.group,
    )  # fmt: skip
    items = standing_items(weights.family, config, prompt, reply)
    to_come = sum(item.size for item in items if item.phase == "always" and not item.there)
    length = len(prompt) + reply
    rows = rows_of_pass(config, length)
    while rows and not _fits(weights, prompt, reply, rows, config, to_come):
        rows //= 2
    rows = int(distributed.gather(torch.tensor([rows]), world).min())
    if rows == 0:
        table = ", ".join(f"{item.name} {gib(item.size)}" for item in items if item.phase == "always" and item.size)
        raise UserError(
            f"Not even one reply of {reply} tokens to a prompt of {len(prompt)} fits into the memory of "
            f"{config.device} beside what is always there (GiB: {table}). {_advise(config)} --plan says more."
        )
    if rows == rows_of_pass(config, length):
        return config
    if config.micro_tokens is None:
        chosen, said = replace(config, micro_batch=rows), f"--micro-batch {rows}"
    else:
        chosen, said = replace(config, micro_tokens=rows * length), f"--micro-tokens {rows * length}"
    if world.first:
        asked = config.micro_batch if config.micro_tokens is None else config.micro_tokens
        print(f"fitted to the memory of {config.device}: {said} instead of {asked}", flush=True)
    return chosen


def _advise(config: RunConfig) -> str:
    """What to try where one row is too much."""
    smaller = "Take smaller --max-new-tokens, --history-images or --image-tokens, or a smaller model."
    if not config.recompute:
        return f"Try --recompute. {smaller}"
    return smaller if config.lora.rank else f"Try adapters (--lora.rank 16). {smaller}"


def _fits(weights: Weights, prompt: Prompt, reply: int, rows: int, config: RunConfig, to_come: int) -> bool:
    """Try one pass; whether memory sufficed."""
    device, fits = weights.family.device, True
    try:
        held = torch.empty(to_come if device.type == "cuda" else 0, dtype=torch.uint8, device=device)
        _pass(weights.scorer, [another(prompt, row) for row in range(rows)], reply, config)
        del held
    except (torch.OutOfMemoryError, MemoryError):
        fits = False
    for parameter in weights.parameters:
        parameter.grad = None
    for engine in engines(weights):
        engine.forget()
    gc.collect()  # the error's frames held tensors
    torch.cuda.empty_cache()
    return fits


def _pass(scorer: Engine, prompts: Sequence[Prompt], reply: int, config: RunConfig) -> None:
    """A forward and backward pass over replies of full length."""
    ids = torch.full((len(prompts), reply), scorer.family.turn_end, device=scorer.family.device)
    run: Any = scorer.score_flat_states if config.flat else scorer.score_states
    run(prompts, ids, torch.ones_like(ids, dtype=torch.bool), train_vision=config.train_vision)[0].mean().backward()


def another(prompt: Prompt, number: int) -> Prompt:
    """A prompt of the same size that shares nothing with others: other ids from the first on, other pictures."""
    mark = number.to_bytes(8, "big")

    def other(image: ImageInput) -> ImageInput:
        return replace(image, digest=image.digest + mark)

    ids = prompt.ids.clone()
    ids[0] = number
    return replace(prompt, ids=ids, images=tuple(other(image) for image in prompt.images), key=prompt.key + mark)

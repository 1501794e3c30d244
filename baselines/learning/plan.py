"""`--plan`: how much memory a run would take, as a table, and whether that fits; nothing is trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from vlgym.errors import UserError
from vlgym.terminal import open_console, print_rows

from ..models.family import Prompt
from ..models.limits import NEW_TOKENS
from ..models.shapes import shape_family
from .config import DEFAULT_MODEL, RunConfig
from .environments import Environments
from .memory import GIB, SHARE, MemoryPlan, device_bytes, gib, largest_rows, plan_memory, prepare
from .resuming import saved_config
from .worst_case import longest_prompt


def show_plan(config: RunConfig) -> MemoryPlan:
    """Print what a run of this configuration would take, and return it.

    Raises:
        UserError: an option is wrong, there is no such model, or no such device whose memory was not given.
    """
    c = (saved_config(config) if config.resume else config).resolve()
    if c.sharded:
        raise UserError("--plan counts a process with whole weights; leave out --shard.")
    plan, prompt, advice, own = make_plan(c)
    console = open_console()

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    adapters = f", adapters of rank {c.lora.rank}" if c.lora.rank else ", all weights"
    say(f"{c.algorithm}, {c.env}, {c.model}, {c.dtype}{adapters}, {c.device}; one process")
    images = f", of which {len(prompt.images)} images {sum(x.tokens for x in prompt.images)}" if prompt.images else ""
    counted = "" if own else ", counted with the tiny models' tokenizer, because this model's is not there"
    say(f"longest prompt met: {plan.prompt} tokens{images}{counted}; longest reply {plan.reply}\n")
    print_rows(console, ("what", "GiB", "when"), [(x.name, gib(x.size), x.phase) for x in plan.items])
    say(f"\nat most: rollout {gib(plan.total('rollout'))} GiB, update {gib(plan.total('update'))} GiB")
    say(verdict(plan))
    if advice:
        say(advice)
    return plan


def make_plan(c: RunConfig) -> tuple[MemoryPlan, Prompt, str, bool]:
    """Plan a run of a resolved configuration.

    Returns:
        (the plan; the longest prompt; what to do where it does not fit, else empty; whether prompts were counted with
        the model's own tokenizer).

    Raises:
        UserError: there is no such model, or no such device.
    """
    device = _device(c)
    new_tokens = c.max_new_tokens or NEW_TOKENS
    family, own = _shapes(c)
    envs = Environments(c)
    try:
        prompt = longest_prompt(
            envs.ids, family, new_tokens=new_tokens, env_kwargs=envs.kwargs, builder=envs.builder, group=envs.group
        )
    finally:
        envs.close()
    engine = prepare(family, c)
    plan = plan_memory(c, engine, prompt, new_tokens=new_tokens, device=device)
    advice = ""
    if not plan.fits:
        advice = _advise(plan, c, largest_rows(plan, engine, c), _with_recompute(plan, c))
    return plan, prompt, advice, own


def verdict(plan: MemoryPlan) -> str:
    """Whether a plan fits, in a line."""
    if plan.device_bytes is None:
        return ""
    room = f"{gib(SHARE * plan.device_bytes)} of the device's {gib(plan.device_bytes)} GiB"
    rest = "the rest is left to what is not counted"
    return f"it {'fits' if plan.fits else 'does not fit'} into {room} ({rest})"


def _advise(plan: MemoryPlan, c: RunConfig, rows: int, recomputed: int) -> str:
    """What to change so that a run fits."""
    length, found = plan.prompt + plan.reply, []
    room = SHARE * (plan.device_bytes or 0)

    def smaller(number: int) -> str:
        return f"--micro-tokens {number * length}" if c.micro_tokens is not None else f"--micro-batch {number}"

    if plan.total("update") > room:
        if rows:
            found.append(smaller(rows))
        if recomputed > rows:
            found.append(f"--recompute {smaller(recomputed)}")
        if not rows and not recomputed:
            found.append("a smaller model" if c.lora.rank else "--lora.rank 16, or a smaller model")
    if plan.total("rollout") > room:
        found.append("smaller --num-envs, --history-images or --max-new-tokens")
    return f"to fit: {', or '.join(found)}"


def _with_recompute(plan: MemoryPlan, c: RunConfig) -> int:
    """Environment steps of the largest pass that fits with --recompute."""
    if c.recompute:
        return 0
    other = replace(c, recompute=True)
    return largest_rows(plan, prepare(_shapes(other)[0], other), other)


def _shapes(c: RunConfig) -> Any:
    return shape_family(c.model or DEFAULT_MODEL, image_tokens=c.image_tokens, dtype=c.dtype or "float32")


def _device(c: RunConfig) -> int:
    """Bytes of the device that is planned for."""
    if c.plan_gib is not None:
        return int(c.plan_gib * GIB)
    if c.device != "cpu" and not torch.cuda.is_available():
        raise UserError(
            f"--plan --device {c.device}: there is no CUDA device here; say how large it is: --plan-gib 80."
        )
    return device_bytes(c.device)

"""Named sets of values: the settings of the papers and of two cards, each with where it stands, or marked "ours".

    python -m baselines.vldac --preset paper-miniworld --env vlgym/OneRoom-v0 --model Qwen/Qwen2-VL-7B-Instruct

A preset changes defaults; options given with it win. Sources: "D.2" is the appendix of VL-DAC's first version (arXiv
2508.04280v1), "code" the configuration in the published repository, used where the paper says nothing, "C" is RL4VLM's
paper and scripts (arXiv 2405.10292), "LOOP" its paper (arXiv 2502.01600), "fig. 6" is MageBench's (arXiv 2412.04531).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from vlgym.errors import UserError, check_choice

Values = Mapping[str, tuple[Any, str]]

FITS = "ours: what an 80 GB card holds of Qwen2-VL-7B without recomputing"

COMMON: Values = {
    "lr": (5e-5, "D.2: 5e-5 to 1e-7"),
    "final_lr": (0.002, "D.2: 1e-7 is 0.002 of 5e-5"),
    "epochs": (2, "D.2"),
    "minibatch": (128, "D.2: minibatch 1, gradients of 128 accumulated"),
    "env_steps": (51_200, "D.2"),
    "updates": (200, "51,200 steps over 256 a rollout"),
    "num_envs": (64, "ours; the paper plays one environment per process"),
    "rollout_steps": (4, "ours: 64 x 4 = the 256 steps of the code's rollouts"),
    "clip": (0.1, "code; the paper does not say"),
    "max_grad_norm": (1.0, "code, shell scripts"),
    "kl_coef": (0.05, "D.2"),
    "kl_estimator": ("k3", "code"),
    "value_warmup": (2, "D.2"),
    "value_coef": (0.15, "D.2; counts only without the stop-gradient"),
    "value_lr": (1e-3, "ours; the paper has one optimizer"),
    "lora.rank": (16, "code; the paper does not say"),
    "lora.alpha": (32.0, "code; the paper does not say"),
    "eval_episodes": (50, "D.2"),
    "reward.unreadable_penalty": (0.0, "D.2: none"),
    "max_new_tokens": (128, "ours; the code writes up to 1,024, the paper does not say"),
    "dtype": ("bfloat16", "ours"),
    "micro_tokens": (4_096, FITS),
}

CARD: Values = {
    "num_envs": (128, "ours: a token takes as long for 128 rows as for 16, so few long rollouts decode least"),
    "rollout_steps": (2, "256 steps a rollout, as the paper's code"),
    "minibatch": (128, "D.2"),
    "updates": (80, "20,480 steps"),
    "lora.rank": (16, "code; the paper does not say"),
    "dtype": ("bfloat16", "ours"),
    "micro_batch": (16, "7B: 31 + 16 x 2.4 = 69 GiB of 74, by the figures of an H200"),
}

PRESETS: dict[str, Values] = {
    "24gb": {
        **CARD,
        "num_envs": (16, "a quarter of the keys and values"),
        "rollout_steps": (16, "256 steps a rollout"),
        "micro_batch": (4, "3B: 14 + 4 x 1.8 = 21 GiB of 22, 2B: 8 + 4 x 1.1 = 12; 7B's scaled by weights and widths"),
    },
    "80gb": CARD,
    "paper-miniworld": {
        **COMMON,
        "gamma": (0.99, "D.2: 0.99 or 1"),
        "gae_lambda": (0.95, "D.2: 0.95 or 0.99"),
        "history_images": (4, "D.2: image history 4"),
    },
    "paper-alfworld": {
        **COMMON,
        "gamma": (0.99, "D.2: 0.9, 0.99 or 1"),
        "gae_lambda": (0.95, "D.2: 0.9, 0.95 or 1"),
        "history_images": (4, "D.2: image history 4"),
    },
    "paper-ezpoints": {
        **COMMON,
        "gamma": (1.0, "D.2"),
        "gae_lambda": (1.0, "D.2"),
        "history_images": (1, "D.2: image history 1"),
    },
    "paper-webshop": {
        **COMMON,
        "env_steps": (2_000, "section 4: 2k steps"),
        "updates": (8, "2,000 steps over 256 a rollout"),
        "gamma": (0.99, "code: as ALFWorld"),
        "gae_lambda": (0.95, "code: as ALFWorld"),
        "history_images": (2, "code: 2 images"),
    },
    "paper-rl4vlm": {
        "lr": (1e-5, "C: 1e-5 to 1e-9"),
        "final_lr": (1e-4, "C"),
        "epochs": (4, "C"),
        "minibatch": (128, "C: minibatch 1, gradients of 128 accumulated"),
        "env_steps": (15_000, "C"),
        "updates": (30, "15,000 steps over 512 a rollout"),
        "num_envs": (64, "ours; one environment per process there"),
        "rollout_steps": (8, "64 x 8 = the 512 steps of C"),
        "clip": (0.1, "C"),
        "gamma": (0.9, "C"),
        "gae_lambda": (0.95, "C"),
        "value_coef": (0.5, "C"),
        "reward.unreadable_penalty": (0.0, "C: none"),
        "max_grad_norm": (0.01, "C"),
        "lora.rank": (128, "C"),
        "lora.alpha": (256.0, "C"),
        "max_new_tokens": (256, "C"),
        "dtype": ("bfloat16", "C"),
        "micro_tokens": (4_096, FITS),
        "parser": ("json", "C: thoughts and action as JSON"),
    },
    "paper-loop": {
        "reward.unreadable_penalty": (0.0, "LOOP: none"),
        "group": (6, "LOOP; D.2 does not say"),
        "num_envs": (240, "LOOP: 40 tasks of 6 rollouts"),
        "updates": (75, "D.2: 75 algorithm steps"),
        "minibatch": (32, "LOOP: 32 trajectories"),
        "epochs": (2, "LOOP and D.2"),
        "clip": (0.1, "LOOP"),
        "gamma": (1.0, "D.2: 0.99 or 1"),
        "kl_coef": (0.05, "D.2; LOOP itself has none"),
        "lr": (5e-5, "LOOP"),
        "final_lr": (1.0, "LOOP: constant"),
        "lora.rank": (16, "LOOP"),
        "lora.alpha": (32.0, "LOOP"),
        "history_images": (4, "D.2"),
        "eval_episodes": (50, "D.2"),
        "max_new_tokens": (128, "ours"),
        "dtype": ("bfloat16", "ours"),
        "micro_tokens": (2_048, FITS),
    },
    "magebench-rl": {
        "kl_coef": (0.001, 'fig. 6, "+kl"'),
        "reward.unreadable_penalty": (0.0, "fig. 6: none"),
        "reward.repetition_penalty": (0.2, 'fig. 6, "+rep"'),
        "reward.length_bonus": (0.001, 'fig. 6, "+enc"'),
        "reward.length_limit": (200, 'fig. 6, "+enc"'),
    },
}

HARDWARE = {"24gb": "2B to 3B, 24 GB: 21 GiB", "80gb": "7B, 80 GB: 69 GiB", "magebench-rl": "any"}
"""Model, card and computed memory; of the others those of the papers."""

H200 = 6.4  # environment steps a second of a 7B model (docs/results.md)

C = TypeVar("C")


def listing() -> str:
    """One line for each preset: hardware, environment steps, minutes."""
    lines = []
    for name, values in PRESETS.items():
        told = {key: values[key][0] for key in ("env_steps", "updates", "num_envs", "rollout_steps") if key in values}
        steps = told.get("env_steps") or told.get("updates", 0) * told.get("num_envs", 0) * told.get("rollout_steps", 0)
        time = f"{steps:,} steps, {steps / H200 / 60:.0f} minutes with 7B on an H200" if steps else "steps of the run"
        lines.append(f"{name:16} {HARDWARE.get(name, '7B, 80 GB'):24} {time}")
    return "\n".join(lines)


def chosen(config: type[C], arguments: Sequence[str]) -> C:
    """The defaults of a command line: the configuration's own, changed by the preset that the arguments name. Without a
    name, or for `list`, the presets are printed and the program ends.

    Raises:
        UserError: no such preset, or it has values for another learner.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--preset", nargs="?", default="none", const="list")
    if (name := parser.parse_known_args(arguments)[0].preset) == "list":
        print(listing())
        raise SystemExit(0)
    return apply(config(), name)


def apply(config: C, name: str) -> C:
    """A configuration with a preset's values.

    Raises:
        UserError: no such preset, or it has values for another learner.
    """
    if check_choice("--preset", name, ("none", *PRESETS)) == "none":
        return config
    values: dict[str, Any] = {"preset": name}
    known = {item.name for item in fields(config)}  # type: ignore[arg-type]
    for path, (value, _) in PRESETS[name].items():
        group, _, inner = path.rpartition(".")
        if (group or inner) not in known:
            raise UserError(
                f"--preset {name} sets {path}, which this learner does not have; the presets of other learners are for "
                "their own commands (baselines/learning/presets.py)."
            )
        if group:
            values[group] = replace(values.get(group, getattr(config, group)), **{inner: value})
        else:
            values[inner] = value
    return replace(config, **values)  # type: ignore[type-var]

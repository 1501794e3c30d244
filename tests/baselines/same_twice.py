"""Run by test_same_twice.py: two updates of every learner with two threads; prints a digest of each one's weights.

python same_twice.py FOLDER whole|resumed
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from baselines import archer, grpo, loop, rl4vlm, sft, vldac
from baselines.learning.warm_start import WarmConfig

# Batches as large as a real run's: small ones are not split over threads, so they could not show a difference.
WARM = WarmConfig(steps=2, samples=128, batch=64, check_every=50, val_episodes=1)
SHORT: dict[str, Any] = {
    "threads": 2, "warm": WARM, "updates": 2, "rollout_steps": 2, "epochs": 1, "eval_episodes": 0, "max_new_tokens": 24,
    "final_lr": 1.0,  # a constant rate, which does not depend on the number of updates
}  # fmt: skip
LEARNERS: dict[Any, dict[str, Any]] = {
    vldac: {"value_warmup": 0}, rl4vlm: {}, loop: {"num_envs": 8}, grpo: {"num_envs": 8},
    archer: {"critic_warmup": 0, "critic_steps": 2},
}  # fmt: skip


def digest(model: torch.nn.Module) -> str:
    """Of all weights."""
    found = hashlib.sha256()
    for parameter in model.parameters():
        found.update(parameter.detach().numpy().tobytes())
    return found.hexdigest()[:16]


def main(folder: Path, resumed: bool) -> None:
    """Train, and print a line for each learner; `resumed` ends each run after one update, and goes on with it."""
    for module, more in LEARNERS.items():
        out = folder / module.Config.algorithm
        config = module.Config(**SHORT, **more, out=out)
        if resumed:
            module.train(replace(config, updates=1))
            config = module.Config(out=out, resume=True, updates=2)
        print(module.Config.algorithm, digest(module.train(config).weights.family.model), flush=True)
    warm = sft.run(sft.Config(threads=2, warm=WARM, out=folder / "sft"))
    print("sft", f"{warm.loss!r}", hashlib.sha256((folder / "sft" / "model.safetensors").read_bytes()).hexdigest()[:16])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "resumed")

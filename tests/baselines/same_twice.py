"""Run by test_same_twice.py: two updates of every learner with two threads; prints a digest of each one's weights.

python same_twice.py FOLDER whole|resumed
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from baselines import archer, grpo, loop, rl4vlm, sft, vldac
from baselines.learning.rewards import RewardOptions
from baselines.learning.warm_start import WarmConfig
from baselines.runs.checkpoint import checkpoints

# Batches as large as a real run's: small ones are not split over threads, so they could not show a difference.
WARM = WarmConfig(steps=30, samples=256, batch=64, check_every=50, val_episodes=1)
SHORT: dict[str, Any] = {
    "threads": 2, "updates": 2, "rollout_steps": 2, "epochs": 1, "eval_episodes": 0, "max_new_tokens": 24, "lr": 3e-4,
    "final_lr": 1.0,  # a constant rate, which does not depend on the number of updates
    "reward": RewardOptions(length_bonus=0.1),  # the model is poor: only the length of its replies tells them apart
}  # fmt: skip
LEARNERS: dict[Any, dict[str, Any]] = {
    vldac: {"value_warmup": 0}, rl4vlm: {}, loop: {"num_envs": 8}, grpo: {"num_envs": 8},
    archer: {"critic_warmup": 0, "critic_steps": 2},
}  # fmt: skip


def digest(out: Path) -> str:
    """Of the newest checkpoint: weights, optimizers, generators and episodes."""
    newest = checkpoints(out / "checkpoints")[-1]
    state = json.loads((newest / "state.json").read_text())
    state.pop("warm")
    text = (newest / "tensors.safetensors").read_bytes() + json.dumps(state).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def main(folder: Path, resumed: bool) -> None:
    """Train, and print a line for each learner; `resumed` ends each run after one update, and goes on with it."""
    warm = sft.run(sft.Config(threads=2, warm=WARM, out=folder / "sft"))
    model = folder / "sft" / "model.safetensors"
    print("sft", f"{warm.loss!r}", hashlib.sha256(model.read_bytes()).hexdigest()[:16], flush=True)
    for module, more in LEARNERS.items():
        out = folder / module.Config.algorithm
        config = module.Config(**SHORT, **more, model=str(model.parent), out=out)
        if resumed:
            module.train(replace(config, updates=1))
            config = module.Config(out=out, resume=True, updates=2)
        module.train(config)
        moved = (out / "model" / "model.safetensors").read_bytes() != model.read_bytes()
        print(module.Config.algorithm, digest(out), "trained" if moved else "nothing was learnt", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "resumed")

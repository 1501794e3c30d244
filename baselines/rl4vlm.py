"""RL4VLM: step-level PPO on lambda * log p(thoughts) + log p(action).

    python -m baselines.rl4vlm --env vlgym/NumberLine-v1 --thought-weight 0.3

The method (Zhai et al., NeurIPS 2024, arXiv 2405.10292; VL-DAC eq. 1): the log-probability of an environment step is
that of its action's tokens plus lambda times that of the thoughts before them; PPO's ratio is taken and clipped on this
one number per step; the critic shares the model, without stop-gradient, warm-up or KL.

It is VL-DAC's learner with other defaults, so that the two differ in nothing else. Departures from the published code:
- the action's tokens are found by character offsets from what the environment's parser read (`learning/spans.py`); of
  a reply in which no action was read, the last four are scored as the action, as in the code; one of fewer tokens is
  all action, where the code gives it no gradient;
- each step is scored under the prompt that it answered; the code scores all steps under the first prompt;
- log-probabilities are float32, at temperature 1; the code's are bfloat16, at 0.2;
- the value loss is not clipped, no step is skipped for a ratio above 10, truncated episodes bootstrap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from . import vldac
from .learning.command import main
from .vldac import train


@dataclass(frozen=True)
class Config(vldac.Config):
    """Train a vision-language model by RL4VLM.

    Writes checkpoints, log.jsonl, TensorBoard files and curve.png to its run folder.
    """

    algorithm: ClassVar[str] = "RL4VLM"
    command: ClassVar[str] = "baselines.rl4vlm"

    policy_loss: str = "step"
    """step (RL4VLM, eq. 1) or token (VL-DAC, eq. 3): where the probability ratio is taken and clipped."""
    thought_weight: float = 0.5
    """Lambda: weight of the thoughts' log-probability. The source suggests 0.2 to 0.5."""
    kl_coef: float = 0.0
    """Weight of the KL to the reference; RL4VLM has none."""
    value_warmup: int = 0
    """First updates, which train the value head alone; RL4VLM has none."""
    stop_gradient: bool = False
    """Keep the value loss from changing the model; RL4VLM does not."""
    value_coef: float = 0.5
    """Weight of the value loss in the model's gradient (RL4VLM: 0.5)."""


if __name__ == "__main__":
    main(Config, train, __doc__)

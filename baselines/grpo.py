"""GRPO: group-relative advantages of whole episodes, divided by the group's deviation; no critic.

    python -m baselines.grpo --env vlgym/NumberLine-v0 --group 4

The method (Shao et al., 2024, arXiv 2402.03300), for episodes of several turns: K episodes are played from each start
state; the advantage of each is its return less the group's mean, over the group's standard deviation; all its tokens
share it. The clipped token objective and the k3 KL to the reference are averaged over the tokens of an episode and then
over episodes. Groups whose returns are all equal have the advantage 0: they are pulled to the reference, no more.

Departures from the source: episodes instead of single answers, so an observation's tokens are left out of the mean; the
reference is the model as it was before reinforcement learning and is not renewed; the learning rate falls by a cosine.
As in LOOP, compare runs by environment steps (`--env-steps`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from . import loop
from .learning import losses
from .learning.training import main


@dataclass(frozen=True)
class Config(loop.Config):
    """Train a vision-language model by GRPO.

    Writes checkpoints, log.jsonl, TensorBoard files and curve.png to its run folder.
    """

    kl_coef: float = 0.04
    """Weight of the KL to the reference. The source: 0.04."""


class GRPO(loop.LOOP):
    """LOOP's update with the advantages of GRPO."""

    name = "GRPO"
    command = "baselines.grpo"
    Config = Config

    def advantage(self, returns: Tensor) -> Tensor:
        """[G, K] returns -> [G, K] advantages."""
        return losses.group_relative(returns)

    def teaches(self, advantages: Tensor) -> Tensor:
        """All episodes: the KL counts where the advantage is 0, too."""
        return torch.ones_like(advantages, dtype=torch.bool)


if __name__ == "__main__":
    main(GRPO, __doc__)

"""VL-DAC: reinforcement learning of a vision-language model on any registered environment.

    python -m baselines.vldac --env vlgym/NumberLine-v0
    python -m baselines.vldac --env vlgym/EZPoints-v0,vlgym/NumberLine-v0 --model Qwen/Qwen2-VL-2B-Instruct --device
    cuda python -m baselines.vldac --resume --out runs/NumberLine-001

The method (Bredis et al., AAMAS 2026, arXiv 2508.04280): token-level clipped PPO, averaged over a reply's tokens and
then over steps (eq. 3); one step-level GAE advantage per environment step; a value MLP on the hidden state of the last
prompt token behind a stop-gradient (eq. 4); a per-token KL penalty to the reference (eq. 5), the model as it was before
reinforcement learning; the first updates train the value head alone.

Where this file departs from the paper or says what the paper leaves open:
- all weights of the language model are trained by default; `--lora.rank` trains adapters, as the paper does; the vision
  tower is frozen (its features are computed once per image) unless `--train-vision`;
- the value head has its own optimizer and learning rate, so behind the stop-gradient the value coefficient (alpha in
  eq. 6) has nothing to weigh; it counts only under `--no-stop-gradient`. The head reads the hidden states stored at
  rollout, which the policy of the same update wrote;
- truncated episodes bootstrap with V(final observation), terminated ones do not; the published code treats both as
  terminal;
- sampling is real sampling at temperature 1 over the whole vocabulary less the special tokens; the published code
  samples greedily;
- `pi_old` is the log-probability noted while sampling; it agrees with the scorer's to float32 rounding, and every
  update reports how well;
- the learning rate falls by a cosine from the first update that trains the policy; clip range, rollout length and reply
  length are ours (not given in the paper).

The ablations of the paper's figure 4 are switches: `--kl-coef 0`, `--value-warmup 0`, `--no-stop-gradient`,
`--policy-loss step`. All of them together are RL4VLM (`baselines/rl4vlm.py`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .learning import losses
from .learning.collect import Batch, Collector
from .learning.config import RunConfig
from .learning.losses import PolicyLoss
from .learning.session import Session
from .learning.spans import action_mask
from .learning.training import Learner, Stats, main


@dataclass(frozen=True)
class Config(RunConfig):
    """Train a vision-language model by VL-DAC.

    Writes checkpoints, log.jsonl, TensorBoard files and curve.png to its run folder.
    """

    clip: float = 0.2
    """PPO's clip range."""
    gamma: float = 0.9
    """Discount. Take 0.99 where episodes are long."""
    gae_lambda: float = 0.95
    """GAE's lambda."""
    value_lr: float = 1e-3
    """Learning rate of the value head."""
    value_warmup: int = 2
    """First updates, which train the value head alone."""
    stop_gradient: bool = True
    """Keep the value loss from changing the model."""
    value_coef: float = 0.15
    """Weight of the value loss in the model's gradient (alpha of eq. 6); used without a stop-gradient only."""
    policy_loss: str = "token"
    """token (VL-DAC, eq. 3) or step (RL4VLM, eq. 1): where the probability ratio is taken and clipped."""
    thought_weight: float = 0.5
    """Weight of the thoughts' log-probability in the step loss (lambda of eq. 1); used by it only."""

    def resolve(self) -> Any:
        """Fill in what depends on the model, and check ranges."""
        config = super().resolve()
        config.require_positive("value_lr", "clip", "value_coef")
        config.require_share("gamma", "gae_lambda", "thought_weight")
        config.require_one_of("policy_loss", "token", "step")
        return config


class VLDAC(Learner):
    """One update: `epochs` passes over the rollout, each gradient step first of the value head, then of the policy."""

    name = "VL-DAC"
    command = "baselines.vldac"
    Config = Config

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        c = self.config
        self.optimizers["value"] = torch.optim.AdamW(session.value.parameters(), lr=c.value_lr, weight_decay=0.0)
        self.collector = Collector(
            session.make_runners(), session.policy, session.value, steps=c.rollout_steps, gamma=c.gamma,
            gae_lambda=c.gae_lambda, shaper=session.make_shaper(c.gamma), world=session.world,
        )  # fmt: skip

    def warming_up(self, update: int) -> bool:
        """The first `value_warmup` updates train the value head alone."""
        return update <= self.config.value_warmup

    def train_on(self, batch: Batch, update: int) -> dict[str, float]:
        """Learn from one rollout; return the means of the losses."""
        stats: Stats = defaultdict(list)
        lr = self.set_learning_rate(update)
        head = list(self.session.value.parameters())
        for _ in range(self.config.epochs):
            for rows, size in self.minibatches(batch):
                if self.config.stop_gradient or lr == 0:
                    weights = self.weights(batch, rows, size)
                    value = losses.value_loss(self.session.value(batch.hidden[rows]), batch.returns[rows], weights)
                    value.backward()
                    stats["loss/value"].append(float(value.detach()) * self.session.world.size)
                    self.step("value", head, float(value.detach()), stats)
                if lr > 0:
                    self.policy_step(batch, rows, size, stats)
                    if not self.config.stop_gradient:  # its gradient came with the policy's
                        self.step("value", head, 0.0, stats)
        return self.means(stats, lr)

    def policy_loss(self, new: Tensor, batch: Batch, rows: Tensor, weights: Tensor) -> PolicyLoss:
        """Eq. 3, or for the ablation eq. 1."""
        if self.config.policy_loss == "token":
            return super().policy_loss(new, batch, rows, weights)
        chosen = rows.tolist()
        action = action_mask(
            self.session.family, [batch.samples[i] for i in chosen], [batch.spans[i] for i in chosen], new.shape[1]
        )
        return losses.step_ppo_loss(
            new, batch.old[rows], batch.mask[rows], action.to(new.device), batch.advantages[rows],
            clip=self.config.clip, thought_weight=self.config.thought_weight, weights=weights,
        )  # fmt: skip

    def further_loss(self, states: Tensor, batch: Batch, rows: Tensor, weights: Tensor) -> Tensor | float:
        """Without a stop-gradient, alpha times the value loss, through the model."""
        if self.config.stop_gradient:
            return 0.0
        values = self.session.value(states, stop_gradient=False)
        return self.config.value_coef * losses.value_loss(values, batch.returns[rows], weights)


if __name__ == "__main__":
    main(VLDAC, __doc__)

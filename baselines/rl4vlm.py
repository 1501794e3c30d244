"""RL4VLM: step-level PPO on lambda * log p(thoughts) + log p(action).

    python -m baselines.rl4vlm --env vlgym/NumberLine-v1 --thought-weight 0.3

The method (Zhai et al., NeurIPS 2024, arXiv 2405.10292; VL-DAC eq. 1): the log-probability of an
environment step is that of its action's tokens plus lambda times that of the thoughts before them;
PPO's ratio is taken and clipped on this one number per step; the critic shares the model, without
stop-gradient, warm-up or KL.

It is VL-DAC's learner with another loss and other defaults; a KL is a whole reply's, as the loss
is. Departures from the published code:
- the action's tokens are found by what the environment's parser read (`Batch.spans`); of a reply in
  which no action was read, the last four are the action, as in the code; one of fewer tokens is all
  action, where the code gives it no gradient;
- each step is scored under the prompt that it answered; the code scores all under the first;
- log-probabilities are float32, at temperature 1; the code's are bfloat16, at 0.2;
- the value loss is not clipped, no step is skipped for a ratio above 10, truncated episodes
  bootstrap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from vlgym.errors import check_options

from . import vldac
from .engine.engine import Sample
from .learning.batch import Batch
from .learning.command import main
from .learning.losses import PolicyLoss, log_ratio, weigh, with_statistics
from .learning.run import Run
from .models.family import Family

UNREAD_TOKENS = 4  # tokens at the end of a reply that count as its action where none was read


def action_mask(
    family: Family, samples: Sequence[Sample], spans: Sequence[tuple[int, int] | None], width: int
) -> Tensor:
    """True on the tokens from the action's first one to the end of the turn, [B, width] bool.

    Of a reply in which no action was read, the last `UNREAD_TOKENS` are the action, as in RL4VLM's
    code: its penalty counts whatever weight the thoughts have.
    """
    mask = torch.zeros(len(samples), width, dtype=torch.bool)
    for row, (sample, span) in enumerate(zip(samples, spans, strict=True)):
        ids = sample.ids.tolist()
        begin = len(ids) - UNREAD_TOKENS if span is None else family.count_tokens(ids, span[0] + 1) - 1
        mask[row, max(0, begin) : len(ids)] = True
    return mask


@dataclass(frozen=True)
class Config(vldac.Config):
    """Train a vision-language model by RL4VLM."""

    algorithm: ClassVar[str] = "RL4VLM"
    command: ClassVar[str] = "baselines.rl4vlm"

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

    def resolve(self) -> Self:
        config = super().resolve()
        check_options(config, "thought_weight", least=0, most=1)
        config.require_one_of("ratio", "token")
        return config


def train(config: Config) -> Run[vldac.Config]:
    """Train a model, or go on with a run; return the run, closed."""
    return vldac.train(config, RL4VLM)


class RL4VLM(vldac.VLDAC):
    """VL-DAC's learner with the step loss."""

    config: Config
    whole = True

    def policy_loss(self, new: Tensor, batch: Batch, rows: Tensor, weights: Tensor) -> PolicyLoss:
        """Clipped PPO per step (eq. 1); arguments as in `VLDAC.policy_loss`."""
        chosen = rows.tolist()
        samples, spans = [batch.samples[i] for i in chosen], [batch.spans[i] for i in chosen]
        action = action_mask(self.weights.family, samples, spans, new.shape[1])
        return step_ppo_loss(
            new, batch.old[rows], batch.mask[rows], action.to(new.device), batch.advantages[rows],
            clip=self.config.clip, clip_high=self.config.clip_high,
            thought_weight=self.config.thought_weight, weights=weights,
        )  # fmt: skip


def step_ppo_loss(
    new: Tensor, old: Tensor, mask: Tensor, action_mask: Tensor, advantages: Tensor, *, clip: float,
    clip_high: float | None = None, thought_weight: float, weights: Tensor | None = None,
) -> PolicyLoss:  # fmt: skip
    """RL4VLM's policy loss (VL-DAC eq. 1): PPO per STEP on lambda * log p(thoughts) + log p(action).
    With `thought_weight` = 1 it is ordinary sequence-level PPO on the whole reply.

    Args:
        new, old: [B, R] log-probabilities of the sampled tokens.
        mask, action_mask: [B, R] bool, real tokens and the action's; the others are the thoughts'.
        advantages: [B].
        thought_weight: the lambda of eq. 1, in [0, 1].
        weights: [B], of the steps in the sum that the loss then is; None takes their mean.
    """
    # One log-probability per step.
    weight = torch.where(action_mask, torch.ones_like(new), torch.full_like(new, thought_weight))
    zero = torch.zeros_like(new)
    step_new = torch.where(mask, weight * new.float(), zero).sum(-1)
    step_old = torch.where(mask, weight * old.float(), zero).sum(-1)
    lr = log_ratio(step_new, step_old)
    ratio = lr.exp()

    high = clip if clip_high is None else clip_high
    objective = torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + high) * advantages)
    every = torch.ones_like(lr, dtype=torch.bool)
    return with_statistics(-weigh(objective, weights), lr, ratio, every, clip, high)


if __name__ == "__main__":
    main(Config, train, __doc__)

"""LOOP: token-level PPO on leave-one-out advantages of whole episodes; no critic.

    python -m baselines.loop --env vlgym/NumberLine-v1 --group 4

The method (Chen et al., 2025, arXiv 2502.01600; VL-DAC eq. 2): K episodes are played from each
start state; each has the advantage of its return over the mean of the K - 1 others, shared by all
its tokens. The clipped objective is averaged over the tokens of an episode and then over episodes.
Returns are not divided by their deviation, there is no KL, and episodes of no advantage stay out.

Departures from the source: episodes are discounted if `--gamma` is below 1; the ratio is clipped to
[1 - eps, 1 + eps] as in its paper, not to [1 / (1 + eps), 1 + eps] as in its code; all K episodes
are finished before the update, where the source stops the slowest; a cosine for the learning rate.

A rollout is one episode of every environment, so updates differ in length; compare runs by
environment steps (`--env-steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from vlgym.errors import check_number, check_options

from .learning import losses
from .learning.batch import (
    Batch,
    Metrics,
    Optimizers,
    check_log_probs,
    log_probs,
    micro_batches,
    minibatches,
    policy_optimizer,
    score,
)
from .learning.collect import GroupCollector
from .learning.command import main
from .learning.config import ClippedConfig
from .learning.run import Run, Update
from .runs import distributed
from .runs.distributed import share_of
from .vldac import entropy, kl_loss, token_ppo_loss


@dataclass(frozen=True)
class Config(ClippedConfig):
    """Train a vision-language model by LOOP."""

    algorithm: ClassVar[str] = "LOOP"
    command: ClassVar[str] = "baselines.loop"

    group: int = 4
    """Episodes played from each start state (K); --num-envs is a multiple of it. The source: 6."""
    minibatch: int = 16
    """Episodes per gradient step. The source: 32."""
    gamma: float = 1.0
    """Discount within an episode's return."""
    kl_coef: float = 0.0
    """Weight of the KL to the reference; LOOP has none, the paper's comparison takes 0.05."""

    def resolve(self) -> Self:
        config = super().resolve()
        check_options(config, "gamma", least=0, most=1)
        check_number("--group", config.group, 2, hint="Episodes are compared within their group.")
        share_of(config.num_envs, config.group, "--num-envs", "groups of --group")
        return config


def train(config: Config, kind: type[LOOP] | None = None) -> Run[Config]:
    """Train a model, or go on with a run; return the run, closed. `kind` is the learner's class."""
    with Run(config) as run:
        learner = (kind or LOOP)(run)
        run.keep(learner.optimizers, learner.collector)
        learner.train(run.updates())
    return run


class LOOP:
    """The learner: a policy (the run's weights), its optimizer, and a collector of groups."""

    # [G, K] returns of K episodes from each of G starts -> [G, K] advantages.
    advantage: Callable[[Tensor], Tensor] = staticmethod(losses.leave_one_out)
    smallest_advantage: ClassVar[float] = 0.01  # episodes with a smaller one are left out

    def __init__(self, run: Run[Config]) -> None:
        c = run.config
        self.run, self.config, self.weights = run, c, run.weights
        self.passes, self.schedule = c.passes, c.schedule()
        self.optimizers = Optimizers(
            {"policy": policy_optimizer(run.weights.parameters, c.policy_lr)}, c.max_grad_norm, run.world
        )
        self.collector = GroupCollector(run.envs, run.policy, c.group, c.reward)

    def train(self, updates: Iterable[Update]) -> None:
        """Make updates: play, advantage, update, log."""
        for update in updates:
            with update.phase("rollout"):
                batch, returns, metrics = self.play()
                self.compute_advantages(batch, returns)
            with update.phase("reference"):
                batch.ref = log_probs(self.weights.reference, batch, self.passes)
            with update.phase("check"):
                metrics |= check_log_probs(self.weights.engine, batch, self.passes, self.config.max_logp_gap)
            with update.phase("update"):
                metrics |= self.update(batch, update.number)
            update.log(batch, metrics)

    def play(self) -> tuple[Batch, Tensor, dict[str, float]]:
        """Play an episode in every environment; return batch, returns [G, K] and metrics."""
        return self.collector.play(self.config.gamma)

    def compute_advantages(self, batch: Batch, returns: Tensor) -> None:
        """Give every step of an episode the episode's advantage and return."""
        lengths = torch.tensor([len(unit) for unit in batch.units], device=batch.old.device)
        batch.advantages = self.advantage(returns).flatten().repeat_interleave(lengths)
        self.collector.note_errors(batch.advantages)
        batch.returns = returns.flatten().repeat_interleave(lengths)

    def update(self, batch: Batch, update: int) -> dict[str, float]:
        """Make `epochs` passes over the episodes of a rollout; return the metrics."""
        c, run, metrics = self.config, self.run, Metrics()
        rate = self.schedule.rate(update, run.state.env_steps)
        metrics.add("policy/lr", self.optimizers.set_rate("policy", rate))
        shares = token_shares(batch)
        used = self.teaches(torch.stack([batch.advantages[unit[0]] for unit in batch.units]))
        metrics.add("rollout/used_episodes", float(used.float().mean()))
        for _ in range(c.epochs):
            for rows, size in minibatches(batch.units, c.minibatch, run.world, run.order):
                taught = rows[self.teaches(batch.advantages[rows]).to(rows.device)]  # the order is the host's
                if distributed.any_of(len(taught) > 0, run.world):
                    self.policy_step(batch, taught, shares / size, metrics)
        return metrics.means()

    def teaches(self, advantages: Tensor) -> Tensor:
        """Tell which episodes are learnt from, bool of the same shape."""
        return ~(advantages.abs() < self.smallest_advantage)

    def policy_step(self, batch: Batch, rows: Tensor, weights: Tensor, metrics: Metrics) -> None:
        """One gradient step on policy loss + beta * KL, over the forward passes of this process's
        `rows`; `weights` [B] are those of all rows of the batch in the loss."""
        c, total = self.config, 0.0
        for part in micro_batches(batch, rows, self.passes):
            old, mask, share = batch.old[part], batch.mask[part], weights[part]
            new, _ = score(self.weights.engine, batch, part, self.passes)
            policy = token_ppo_loss(
                new, old, mask, batch.advantages[part], clip=c.clip, clip_high=c.clip_high,
                sequence=c.ratio == "sequence", weights=share,
            )  # fmt: skip

            # The options that LOOP itself leaves out.
            loss, kl = policy.loss, None
            if c.entropy_coef:
                loss = loss - c.entropy_coef * entropy(new, old, mask, share)
            if batch.ref is not None:
                kl = kl_loss(new, batch.ref[part], mask, share, c.kl_estimator)
                loss = loss + c.kl_coef * kl
            loss.backward()
            total += float(loss.detach())
            metrics.add_policy(policy, kl, share)
        self.optimizers.step("policy", total, metrics)


def token_shares(batch: Batch) -> Tensor:
    """Share of each step in the tokens of its episode, [B]: all its tokens count alike."""
    tokens = batch.mask.sum(-1)
    whole = torch.empty(len(tokens), device=tokens.device)
    for unit in batch.units:
        whole[unit] = tokens[unit].sum().float()
    return tokens / whole


if __name__ == "__main__":
    main(Config, train, __doc__)

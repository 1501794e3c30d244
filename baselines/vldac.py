"""VL-DAC: reinforcement learning of a vision-language model on any registered environment.

    python -m baselines.vldac --env vlgym/NumberLine-v1
    python -m baselines.vldac --env vlgym/NumberLine-v1,vlgym/EZPoints-v1
    python -m baselines.vldac --env vlgym/OneRoom-v0 --model Qwen/Qwen2-VL-2B-Instruct --device cuda --lora.rank 32
    python -m baselines.vldac --resume --out runs/NumberLine-001

The method (Bredis et al., AAMAS 2026, arXiv 2508.04280): token-level clipped PPO, averaged over a reply's tokens and
then over steps (eq. 3); one step-level GAE advantage per environment step; a value MLP on the hidden state of the last
prompt token behind a stop-gradient (eq. 4); a per-token KL penalty to the reference (eq. 5), the model as it was before
reinforcement learning; the first updates train the value head alone.

This file is the whole algorithm, top to bottom: `train` is a run, `make` an update, `collect` plays and computes
advantages, `learn` cuts minibatches, `value_step` and `policy_step` are the gradient steps. To try another loss, copy
this file and change it.

Where it departs from the paper, or says what the paper leaves open:
- all weights of the language model are trained by default, of published models on CUDA adapters, as in the paper
  (`--lora.rank`); the vision tower is frozen (its features are computed once per image) unless `--train-vision`;
- the value head has its own optimizer and learning rate, so behind the stop-gradient the value coefficient (alpha in
  eq. 6) has nothing to weigh; it counts only under `--no-stop-gradient`. The head reads the hidden states stored at
  rollout, which the policy of the same update wrote;
- truncated episodes bootstrap with V(final observation), terminated ones do not; the published code treats both as
  terminal;
- replies are sampled at temperature 1 over the whole vocabulary less the special tokens; the published code samples
  greedily;
- `pi_old` is the log-probability noted while sampling; every update reports how well it agrees with the scorer's, and
  ends the run where it does not (`--check.max-gap`); with `--check.old-log-probs scorer` it is the scorer's, and tokens
  get truncated importance weights for what the two differ by;
- the KL is to the frozen base, as in the published code; eq. 5 is printed with `pi_old`;
- beside the step loss, which has the log-probability of a whole reply, the KL is a whole reply's, too: a sum over its
  tokens instead of their mean;
- the learning rate falls by a cosine from the first update that trains the policy; clip range, rollout length and reply
  length are ours (not given in the paper).

The ablations of the paper's figure 4 are switches: `--kl-coef 0`, `--value-warmup 0`, `--no-stop-gradient`,
`--policy-loss step`. All of them together are RL4VLM (`baselines/rl4vlm.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from torch import Tensor

from vlgym.errors import UserError

from .learning import losses
from .learning.batch import Batch, check_log_probs, log_probs, micro_batches, minibatches, score
from .learning.collect import Collector, flags
from .learning.command import main
from .learning.config import RunConfig
from .learning.losses import PolicyLoss
from .learning.optimizers import Metrics, Optimizers, learning_rate, policy_optimizer
from .learning.pool import FOLDER, Pool, PoolOptions
from .learning.rating import rate_pool
from .learning.run import Run, Update
from .learning.self_play import SelfPlay
from .learning.spans import action_mask
from .learning.value import ValueHead
from .runs import distributed


@dataclass(frozen=True)
class Config(RunConfig):
    """Train a vision-language model by VL-DAC.

    Writes checkpoints, log.jsonl, TensorBoard files and curve.png to its run folder.
    """

    algorithm: ClassVar[str] = "VL-DAC"
    command: ClassVar[str] = "baselines.vldac"

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
    self_play: bool = False
    """For games of several agents: the model holds every seat, or one against the pool, and each of its turns is data.

    An update plays whole games: at each of --num-envs tables until --rollout-steps turns have been taken there.
    """
    pool: PoolOptions = field(default_factory=PoolOptions)
    """Opponents of --self-play."""

    def resolve(self) -> Self:
        """Fill in what depends on the model, and check ranges."""
        config = super().resolve()
        config.require_positive("value_lr", "clip", "value_coef")
        config.require_at_least(0, "value_warmup")
        config.require_share("gamma", "gae_lambda", "thought_weight")
        config.require_one_of("policy_loss", "token", "step")
        config.pool.validate()
        if config.self_play and config.envs != "local":
            raise UserError("--self-play opens its tables in this process; it does not go with --envs.")
        if config.pool != PoolOptions() and not config.self_play:
            raise UserError("--pool.… names opponents of --self-play; add --self-play, or leave it out.")
        return config

    @property
    def ratio_per_step(self) -> bool:
        """Whether the policy's ratio is taken of whole replies, not of single tokens."""
        return self.policy_loss == "step"


def train(config: Config) -> Run[Config]:
    """Train a model, or go on with a run; return the run, closed."""
    with Run(config) as run:
        learner = VLDAC(run)
        run.keep(learner.optimizers, learner.games or learner.collector, {"value": learner.value})
        for update in run.updates():
            learner.make(update)
        if learner.games is not None and run.finished():
            rate_pool(run, learner.games)
    return run


class VLDAC:
    """The learner: a policy (the run's weights), a value head, an optimizer for each, and what plays the rollouts.

    Args:
        run: gives the model, the environments and the configuration.
    """

    def __init__(self, run: Run[Config]) -> None:
        c = self.config = run.config
        self.run, self.weights = run, run.weights
        hidden_size = run.weights.family.language_model.config.hidden_size
        self.value = ValueHead(hidden_size, seed=c.seed).to(c.device)
        self.optimizers = Optimizers(
            {
                "policy": policy_optimizer(run.weights.parameters, c),
                "value": torch.optim.AdamW(self.value.parameters(), lr=c.value_lr, weight_decay=0.0),
            },
            c.max_grad_norm,
            run.world,
        )
        self.games: SelfPlay | None = None
        if c.self_play:
            pool = Pool(run.out / FOLDER, run.weights, c.pool, c.device)
            self.games = SelfPlay(run.envs, run.policy, pool, gamma=c.gamma)
        else:
            self.collector = Collector(run.envs.make_runner(), run.policy, run.envs.make_shaper(c.gamma))

    def make(self, update: Update) -> None:
        """Make one update: rollout, reference, check of the log-probabilities, gradient steps."""
        with update.phase("rollout"):
            batch, metrics = self.collect() if self.games is None else self.collect_games(self.games, update.number)
        with update.phase("reference"):
            if self.weights.reference is not None:
                batch.ref = log_probs(self.weights.reference, batch, self.config)
        with update.phase("check"):
            metrics |= check_log_probs(self.weights.scorer, batch, self.config, self.run.world)
        with update.phase("update"):
            metrics |= self.learn(batch, update.number)
        update.log(batch, metrics)

    def collect(self) -> tuple[Batch, dict[str, float]]:
        """Play `rollout_steps` steps of every environment, and compute one advantage per environment step."""
        c, world = self.config, self.run.world
        rows = self.collector.play(c.rollout_steps)
        batch, metrics = self.collector.pack(rows)
        device = batch.hidden.device
        self.value.fit(distributed.gather(batch.hidden, world))
        with torch.no_grad():
            values = self.value(batch.hidden).view(len(rows), -1)
            last_values, final_values = self.collector.values_after(rows, self.value)
        advantages, returns = losses.step_gae(
            torch.tensor(self.collector.rewards(rows), device=device), values, last_values,
            flags(rows, "terminated", device), flags(rows, "truncated", device), final_values,
            gamma=c.gamma, lam=c.gae_lambda,
        )  # fmt: skip
        at = len(rows) * self.run.envs.shares.first
        everywhere = losses.normalise_advantages(distributed.gather(advantages.flatten(), world))
        batch.advantages = everywhere[at : at + len(batch.samples)]
        batch.returns, batch.values = returns.flatten(), values.flatten()
        metrics["value/explained_variance"] = losses.explained_variance(values.flatten(), batch.returns)
        return batch, metrics

    def collect_games(self, games: SelfPlay, update: int) -> tuple[Batch, dict[str, float]]:
        """Play whole games, and compute one advantage per turn."""
        c = self.config
        batch, metrics = games.collect(update, c.rollout_steps, self.value, c.gamma, c.gae_lambda)
        batch.advantages = losses.normalise_advantages(batch.advantages)
        if batch.values is not None:
            metrics["value/explained_variance"] = losses.explained_variance(batch.values, batch.returns)
        return batch, metrics

    def learn(self, batch: Batch, update: int) -> dict[str, float]:
        """One update: `epochs` passes over the rollout, each gradient step first of the value head, then of the policy.

        Returns:
            the means of the losses and of what else was noted.
        """
        c, run, metrics = self.config, self.run, Metrics()
        lr = self.optimizers.set_rate("policy", self.rate(update))
        metrics.add("policy/lr", lr)
        for _ in range(c.epochs):
            for rows, size in minibatches(batch.units, c.minibatch, run.envs.shares, run.order):
                if c.stop_gradient or lr == 0:
                    self.value_step(batch, rows, size, metrics)
                if lr > 0:
                    self.policy_step(batch, rows, size, metrics)
        return metrics.means()

    def rate(self, update: int) -> float:
        """Learning rate of the policy at an update: 0 while the value head warms up."""
        return learning_rate(self.config, update, self.run.state.env_steps, rests=self.config.value_warmup)

    def value_step(self, batch: Batch, rows: Tensor, size: int, metrics: Metrics) -> None:
        """One gradient step of the value head on (V - return)^2 / 2, from the states stored at rollout.

        Args:
            batch: the rollout.
            rows: rows of this process in the minibatch.
            size: environment steps of the minibatch over all processes.
            metrics: notes the loss.
        """
        loss = losses.value_loss(self.value(batch.hidden[rows]), batch.returns[rows], step_weights(batch, rows, size))
        loss.backward()
        if len(rows):
            metrics.add("loss/value", float(loss.detach()) / (len(rows) / size))
        self.optimizers.step("value", float(loss.detach()), metrics)

    def policy_step(self, batch: Batch, rows: Tensor, size: int, metrics: Metrics) -> None:
        """One gradient step of the policy on policy loss + beta * KL (eq. 6), accumulated over forward passes.

        Args: as in `value_step`.
        """
        c, total = self.config, 0.0
        for part in micro_batches(batch, rows, c):
            weights = step_weights(batch, part, size)
            new, states = score(self.weights.scorer, batch, part, c)
            policy = self.policy_loss(new, batch, part, weights)
            loss, kl = policy.loss, None
            if not c.stop_gradient:  # the ablation: alpha times the value loss, through the model
                values = self.value(states, stop_gradient=False)
                loss = loss + c.value_coef * losses.value_loss(values, batch.returns[part], weights)
            if batch.ref is not None:
                kl = losses.kl_loss(
                    new, batch.ref[part], batch.mask[part], weights, c.kl_estimator, whole=c.policy_loss == "step"
                )
                loss = loss + c.kl_coef * kl
            loss.backward()
            total += float(loss.detach())
            metrics.add_policy(policy, kl, weights)
        self.optimizers.step("policy", total, metrics)
        if not c.stop_gradient:  # its gradient came with the policy's
            self.optimizers.step("value", 0.0, metrics)

    def policy_loss(self, new: Tensor, batch: Batch, rows: Tensor, weights: Tensor) -> PolicyLoss:
        """Clipped PPO per token (eq. 3), or for the ablation per step (eq. 1).

        Args:
            new: [b, R] log-probabilities of the replies under the current weights.
            batch: the rollout.
            rows: [b] rows of the batch.
            weights: [b], of the rows in the loss.
        """
        c, old, mask, advantages = self.config, batch.old[rows], batch.mask[rows], batch.advantages[rows]
        importance = batch.importance_of(rows)
        if c.policy_loss == "token":
            return losses.token_ppo_loss(
                new, old, mask, advantages, clip=c.clip, weights=weights, importance=importance
            )
        chosen = rows.tolist()
        action = action_mask(
            self.weights.family, [batch.samples[i] for i in chosen], [batch.spans[i] for i in chosen],
            new.shape[1],
        )  # fmt: skip
        return losses.step_ppo_loss(
            new, old, mask, action.to(new.device), advantages,
            clip=c.clip, thought_weight=c.thought_weight, weights=weights, importance=importance,
        )  # fmt: skip


def step_weights(batch: Batch, rows: Tensor, size: int) -> Tensor:
    """Weight of each row [b] in a minibatch of `size` environment steps over all processes: every step counts alike."""
    return torch.full((len(rows),), 1.0 / size, device=batch.old.device)


if __name__ == "__main__":
    main(Config, train, __doc__)

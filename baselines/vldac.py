"""VL-DAC: reinforcement learning of a vision-language model on any registered environment.

    python -m baselines.vldac --env vlgym/NumberLine-v1
    python -m baselines.vldac --env vlgym/OneRoom-v1 --model Qwen/Qwen2-VL-2B-Instruct --preset 24gb

The method (Bredis et al., AAMAS 2026, arXiv 2508.04280): token-level clipped PPO, averaged over a
reply's tokens and then over steps (eq. 3); one step-level GAE advantage per environment step; a
value MLP on the hidden state of the last prompt token behind a stop-gradient (eq. 4); a per-token
KL penalty to the reference (eq. 5), the model as it began; the first updates train that head alone.

`VLDAC.train` is the loop over updates: play, value, advantage, update, log. Its parts stand below
it in this order, then the value head and the equations. To try another loss, copy this file.

Departures from the paper, and what it leaves open:
- all weights of the language model are trained by default, of published models on CUDA adapters, as
  in the paper (`--lora.rank`); the vision tower is frozen unless `--train-vision`;
- the value head has its own optimizer, so alpha of eq. 6 counts only under `--no-stop-gradient`. It
  reads the states stored at rollout, standardised by that rollout: states of different observations
  differ by 1 % of their norm, and an update moves all of them by ten times as much. It trains for
  more epochs than the policy (`--value-epochs`), and an average of its weights over gradient steps
  values the rollouts;
- where the value loss reaches the model, the head reads the state as it is: the division by its
  deviation would make the model's gradient the critic's;
- truncated episodes bootstrap with V(final observation), in the published code they do not;
- replies are sampled at temperature 1 over the whole vocabulary less the special tokens; the
  published code samples greedily;
- `pi_old` is noted while sampling; the scorer must agree with it (`--max-logp-gap`);
- the KL is to the frozen base, as in the published code, by k2; eq. 5 is printed with `pi_old`;
- the learning rate falls by a cosine; clip range, rollout and reply length are ours.

The ablations of the paper's figure 4 are switches: `--kl-coef 0`, `--value-warmup 0`,
`--no-stop-gradient`. RL4VLM (`baselines/rl4vlm.py`) has all of them and another loss;
`baselines/self_play.py` plays games against itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from vlgym.errors import check_options

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
from .learning.collect import Collector, Rows
from .learning.command import main
from .learning.config import ClippedConfig
from .learning.losses import KLEstimator, PolicyLoss, log_ratio, token_mean, weigh, with_statistics
from .learning.run import Run, Update
from .runs import distributed


@dataclass(frozen=True)
class Config(ClippedConfig):
    """Train a vision-language model by VL-DAC."""

    algorithm: ClassVar[str] = "VL-DAC"
    command: ClassVar[str] = "baselines.vldac"

    gamma: float = 0.9
    """Discount. Take 0.99 where episodes are long."""
    gae_lambda: float = 0.95
    """GAE's lambda."""
    value_lr: float = 1e-3
    """Learning rate of the value head."""
    value_epochs: int = 8
    """Passes of the value head over a rollout, those with the policy included."""
    value_warmup: int = 2
    """First updates, which train the value head alone."""
    stop_gradient: bool = True
    """Keep the value loss from changing the model."""
    target_kl: float | None = None
    """End an update's passes beyond this KL per token (k3) to the policy that sampled."""
    value_coef: float = 0.15
    """Weight of the value loss in the model's gradient (alpha of eq. 6), if it is not stopped."""

    def resolve(self) -> Self:
        config = super().resolve()
        check_options(config, "value_lr", "value_coef", above=0)
        check_options(config, "value_warmup", "target_kl", least=0)
        check_options(config, "value_epochs", least=1)
        check_options(config, "gamma", "gae_lambda", least=0, most=1)
        return config


def train(config: Config, kind: type[VLDAC] | None = None) -> Run[Config]:
    """Train a model, or go on with a run; return the run, closed. `kind` is the learner's class."""
    with Run(config) as run:
        learner = (kind or VLDAC)(run)
        run.keep(learner.optimizers, learner.collector, {"value": learner.value, "steady": learner.steady})
        learner.train(run.updates())
        if run.finished():
            learner.finish()
    return run


class VLDAC:
    """The learner: a policy (the run's weights), a value head, optimizers, and a collector."""

    whole: ClassVar[bool] = False  # the policy's ratio is taken of whole replies, not of single tokens

    def __init__(self, run: Run[Config]) -> None:
        c = self.config = run.config
        self.passes, self.schedule = c.passes, c.schedule(rests=c.value_warmup)
        self.run, self.weights = run, run.weights

        # The averaged head has the newest standardisation: it reads states of the same rollout.
        hidden_size = run.weights.family.language_model.config.hidden_size
        self.value = ValueHead(hidden_size, seed=c.seed).to(c.device)
        self.steady = AveragedModel(self.value, multi_avg_fn=get_ema_multi_avg_fn(0.97))
        self.steady.module.norm = self.value.norm

        # Without a stop-gradient, too, the head has its own learning rate.
        value = torch.optim.AdamW(self.value.parameters(), lr=c.value_lr, weight_decay=0.0)
        policy = policy_optimizer(run.weights.parameters, c.policy_lr)
        self.optimizers = Optimizers({"policy": policy, "value": value}, c.max_grad_norm, run.world)
        self.collector = self.make_collector()

    def make_collector(self) -> Any:
        """Make what plays the rollouts."""
        return Collector(self.run.envs.make_runner(), self.run.policy, self.config.reward)

    def train(self, updates: Iterable[Update]) -> None:
        """Make updates: play, value, advantage, update, log."""
        for update in updates:
            with update.phase("rollout"):
                batch, rows, metrics = self.play()
                values = self.compute_values(batch, rows)
                metrics |= self.compute_advantages(batch, rows, values)
            with update.phase("reference"):
                batch.ref = log_probs(self.weights.reference, batch, self.passes)
            with update.phase("check"):
                metrics |= check_log_probs(self.weights.engine, batch, self.passes, self.config.max_logp_gap)
            with update.phase("update"):
                metrics |= self.update(batch, update.number)
            update.log(batch, metrics)

    def play(self) -> tuple[Batch, Rows, dict[str, float]]:
        """Play `rollout_steps` steps of every environment; return batch, records and metrics."""
        rows = self.collector.play(self.config.rollout_steps)
        batch, metrics = self.collector.pack(rows)
        return batch, rows, metrics

    @torch.no_grad()
    def compute_values(self, batch: Batch, rows: Rows) -> Values:
        """Value every state that was answered, and those with which the advantages bootstrap."""
        # A deviation of 1 % would multiply the gradient that reaches the model.
        if self.config.stop_gradient:
            self.value.norm.fit(distributed.gather(batch.hidden, self.run.world).float())
        batch.values = self.steady(batch.hidden)
        return Values(batch.values.view(len(rows), -1), *self.collector.values_after(rows, self.steady))

    def compute_advantages(self, batch: Batch, rows: Rows, values: Values) -> dict[str, float]:
        """Compute one advantage and one return per environment step."""
        c, world, device = self.config, self.run.world, batch.hidden.device
        rewards = torch.tensor(self.collector.rewards(rows), device=device)
        ends = [[(bool(record.terminated), bool(record.truncated)) for record in row] for row in rows]
        terminated, truncated = torch.tensor(ends, device=device).unbind(-1)
        advantages, returns = step_gae(
            rewards, values.now, values.last, terminated, truncated, values.final, gamma=c.gamma, lam=c.gae_lambda
        )
        self.collector.note_errors(advantages)

        # Advantages are normalised over all processes.
        at = len(batch.samples) * world.rank
        everywhere = losses.normalise_advantages(distributed.gather(advantages.flatten(), world))
        batch.advantages, batch.returns = everywhere[at : at + len(batch.samples)], returns.flatten()
        return {"value/explained_variance": losses.explained_variance(values.now.flatten(), batch.returns)}

    def update(self, batch: Batch, update: int) -> dict[str, float]:
        """Train the value head, then the policy, at rest in the warm-up; return the metrics."""
        c, run, metrics = self.config, self.run, Metrics()
        lr = self.optimizers.set_rate("policy", self.schedule.rate(update, run.state.env_steps))
        metrics.add("policy/lr", lr)

        # The head learns before the policy moves; without a stop-gradient it then moves, too.
        joint = 0 if c.stop_gradient or lr == 0 else c.epochs  # passes of the head with the policy
        for rows, size in self.draw(batch, max(0, c.value_epochs - joint)):
            self.value_step(batch, rows, size, metrics)
        for rows, size in self.draw(batch, c.epochs if lr > 0 else 0):
            moved = self.policy_step(batch, rows, size, metrics)
            if c.target_kl is not None and distributed.any_of(moved > c.target_kl, run.world):
                break
        return metrics.means()

    def finish(self) -> None:
        """Called after the last update."""

    def draw(self, batch: Batch, epochs: int) -> Iterator[tuple[Tensor, int]]:
        """Minibatches of some passes over a rollout, as `minibatches` yields them."""
        for _ in range(epochs):
            yield from minibatches(batch.units, self.config.minibatch, self.run.world, self.run.order)

    def value_step(self, batch: Batch, rows: Tensor, size: int, metrics: Metrics) -> None:
        """One gradient step of the value head, from the states stored at rollout; `rows` are this
        process's in a minibatch of `size` environment steps over all processes."""
        loss = value_loss(self.value(batch.hidden[rows]), batch.returns[rows], step_weights(batch, rows, size))
        loss.backward()
        if len(rows):
            metrics.add("loss/value", float(loss.detach()) / (len(rows) / size))
        self.optimizers.step("value", float(loss.detach()), metrics)
        self.steady.update_parameters(self.value)

    def policy_step(self, batch: Batch, rows: Tensor, size: int, metrics: Metrics) -> float:
        """One gradient step of the policy on policy loss + beta * KL (eq. 6), over forward passes;
        arguments as in `value_step`. Return how far the policy had moved: KL per token, by k3."""
        c, total, moved = self.config, 0.0, 0.0
        for part in micro_batches(batch, rows, self.passes):
            weights = step_weights(batch, part, size)
            new, states = score(self.weights.engine, batch, part, self.passes)

            # Policy loss, less the entropy bonus.
            policy = self.policy_loss(new, batch, part, weights)
            loss, kl = policy.loss, None
            if c.entropy_coef:
                loss = loss - c.entropy_coef * entropy(new, batch.old[part], batch.mask[part], weights)
            if not c.stop_gradient:  # the ablation: alpha times the value loss, through the model
                values = self.value(states, stop_gradient=False)
                loss = loss + c.value_coef * value_loss(values, batch.returns[part], weights)

            # The KL holds the policy near the model as it was.
            if batch.ref is not None:
                kl = kl_loss(new, batch.ref[part], batch.mask[part], weights, c.kl_estimator, whole=self.whole)
                loss = loss + c.kl_coef * kl
            loss.backward()
            total += float(loss.detach())
            moved += float(policy.approx_kl) * len(part) / len(rows)
            metrics.add_policy(policy, kl, weights)
        self.optimizers.step("policy", total, metrics)
        if not c.stop_gradient:  # its gradient came with the policy's
            self.optimizers.step("value", 0.0, metrics)
            self.steady.update_parameters(self.value)
        return moved

    def policy_loss(self, new: Tensor, batch: Batch, rows: Tensor, weights: Tensor) -> PolicyLoss:
        """Clipped PPO per token (eq. 3) of rows [b], whose log-probabilities now are `new` [b, R];
        `weights` [b] are theirs in the loss."""
        return token_ppo_loss(
            new, batch.old[rows], batch.mask[rows], batch.advantages[rows],
            clip=self.config.clip, clip_high=self.config.clip_high, sequence=self.config.ratio == "sequence",
            weights=weights,
        )  # fmt: skip


class Values(NamedTuple):
    """Values of a rollout's states."""

    now: Tensor  # [T, N], of those that were answered
    last: Tensor  # [N], of those that are open
    final: Tensor  # [T, N], of the final ones of truncated episodes, 0 elsewhere


def step_weights(batch: Batch, rows: Tensor, size: int) -> Tensor:
    """Weight of each row [b] in a minibatch of `size` environment steps: all count alike."""
    return torch.full((len(rows),), 1.0 / size, device=batch.old.device)


# -- value head ------------------------------------------------------------------------------------


class Standardise(nn.Module):
    """Subtract the mean and divide by the deviation that `fit` saw; then rows get unit deviation.
    States have much in common and differ little; the last step bounds what comes later."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("deviation", torch.ones(size))

    def fit(self, x: Tensor) -> None:
        """Take mean and deviation of features [B, size]; dimensions that hardly vary stay small."""
        deviation = x.std(0, correction=0)
        self.mean.copy_(x.mean(0))
        self.deviation.copy_(deviation + 0.1 * deviation.mean() + 1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """Shape of `x`."""
        return nn.functional.layer_norm((x - self.mean) / self.deviation, x.shape[-1:])


class ValueHead(nn.Module):
    """Two-layer MLP on standardised states, 0 before training; moves no global generator."""

    def __init__(self, hidden_size: int, width: int = 256, seed: int = 0) -> None:
        super().__init__()
        self.norm = Standardise(hidden_size)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.inner = nn.Linear(hidden_size, width)
            self.outer = nn.Linear(width, 1)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, hidden: Tensor, *, stop_gradient: bool = True) -> Tensor:
        """[B, H] states of the last prompt token, detached -> [B] values, float32."""
        x = self.norm((hidden.detach() if stop_gradient else hidden).float())
        return self.outer(nn.functional.silu(self.inner(x))).squeeze(-1)


# -- equations -------------------------------------------------------------------------------------


def step_gae(
    rewards: Tensor, values: Tensor, last_values: Tensor, terminated: Tensor, truncated: Tensor, final_values: Tensor,
    *, gamma: float, lam: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Generalised advantages per ENVIRONMENT STEP (GAE eq. 16), ends of episodes told apart.

    delta_t = r_t + gamma * V'_t - V_t, where V'_t = 0 if the episode terminated at t;
    `final_values[t]` if it was truncated at t (a time limit says nothing about the state's worth);
    `values[t + 1]` otherwise (`last_values` for the last row). A_t = delta_t + gamma * lam *
    A_{t+1} is cut at both kinds of end. A step with both flags counts as terminated.

    Args:
        rewards, values: [T, N] float; `values[t]` is V of the observation that step t answered.
        last_values: [N] float, V of the observation after the last step (ignored where that ended).
        terminated, truncated: [T, N] bool, as `gymnasium.Env.step` returned them.
        final_values: [T, N] float, V of the final observation of a truncated episode; else ignored.

    Returns:
        (advantages, returns), both [T, N]; returns = advantages + values, the value head's targets.

    >>> never, ends = torch.tensor([[False], [False]]), torch.tensor([[False], [True]])
    >>> rewards, values, none = torch.tensor([[0.0], [1.0]]), torch.zeros(2, 1), torch.zeros(1)
    >>> advantages, _ = step_gae(rewards, values, none, ends, never, values, gamma=0.9, lam=1.0)
    >>> advantages.squeeze(1)
    tensor([0.9000, 1.0000])
    """
    advantages = torch.zeros_like(rewards)
    following_v, following_a = last_values, torch.zeros_like(last_values)
    for t in range(rewards.shape[0] - 1, -1, -1):
        next_v = torch.where(truncated[t], final_values[t], following_v)
        next_v = torch.where(terminated[t], torch.zeros_like(next_v), next_v)
        ended = terminated[t] | truncated[t]
        delta = rewards[t] + gamma * next_v - values[t]
        advantages[t] = delta + gamma * lam * torch.where(ended, torch.zeros_like(following_a), following_a)
        following_v, following_a = values[t], advantages[t]
    return advantages, advantages + values


def token_ppo_loss(
    new: Tensor, old: Tensor, mask: Tensor, advantages: Tensor,
    *, clip: float, clip_high: float | None = None, sequence: bool = False, weights: Tensor | None = None,
) -> PolicyLoss:  # fmt: skip
    """The VL-DAC policy loss (eq. 3): PPO's clipped objective per TOKEN, one advantage per STEP.

    L = -mean_t [ 1/|a_t| sum_i min(r_ti A_t, clip(r_ti, 1 - clip, 1 + clip) A_t) ]. The mean over a
    reply's tokens comes before the mean over steps, so a step weighs the same however long its
    reply is.

    Args:
        new, old: [B, R] log-probabilities of the sampled tokens under the policy being trained and
            under the one that sampled.
        mask: [B, R] bool.
        advantages: [B], shared by all tokens of a step.
        clip, clip_high: ratios are clipped to [1 - clip, 1 + clip_high]; None takes `clip` (DAPO,
            arXiv 2503.14476).
        sequence: all tokens of a reply have one ratio, their geometric mean (GSPO, arXiv
            2507.18071, eq. 7).
        weights: [B], of the steps in the sum that the loss then is; None takes their mean.
    """
    lr = log_ratio(new, old, mask)
    if sequence:
        lr = token_mean(lr, mask).unsqueeze(-1).expand_as(lr).where(mask, 0.0)
    ratio = lr.exp()
    a, high = advantages.unsqueeze(-1), clip if clip_high is None else clip_high
    objective = torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + high) * a)
    return with_statistics(-weigh(token_mean(objective, mask), weights), lr, ratio, mask, clip, high)


def value_loss(values: Tensor, returns: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean of (V - R)^2 / 2 over environment steps [B], no clipping (VL-DAC, text after eq. 4);
    with `weights` [B] the weighted sum."""
    return weigh(0.5 * (values.float() - returns.float()).square(), weights)


def kl_estimate(new: Tensor, ref: Tensor, mask: Tensor, estimator: KLEstimator) -> Tensor:
    """KL(pi_new || pi_ref) by each token, sampled by pi_new (VL-DAC eq. 5); 0 on padding.

    With d = log pi_ref - log pi_new (clamped): k1 = -d (unbiased; its gradient as a LOSS is
    zero-mean noise, so use it inside the reward); k2 = d^2 / 2 (biased, but its gradient is the
    reverse KL's on policy, and grows with d alone: Schulman, 2020, "Approximating KL divergence";
    Liu et al., 2025, arXiv 2510.01555); k3 = e^d - d - 1 (unbiased on policy, never negative; the
    published code's). k3's gradient is e^d: one token that other tokens' steps made improbable can
    outweigh a whole minibatch. All are [B, R], `new` and `ref` log-probabilities of sampled tokens.
    """
    d = log_ratio(ref, new, mask)
    if estimator == "k1":
        return -d
    return 0.5 * d.square() if estimator == "k2" else d.exp() - d - 1


def kl_loss(
    new: Tensor, ref: Tensor, mask: Tensor, weights: Tensor, estimator: KLEstimator, *, whole: bool = False
) -> Tensor:
    """`kl_estimate` (same arguments) of each reply, summed over steps by their weights [B]; scalar.
    One coefficient means the same with either policy loss: the token loss is a mean over a reply's
    tokens, and so is the KL; the step loss is of the `whole` reply, a sum, and so is its KL."""
    per_token = kl_estimate(new, ref, mask, estimator)
    return ((per_token.sum(-1) if whole else token_mean(per_token, mask)) * weights).sum()


def entropy(new: Tensor, old: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """Entropy per token in nats from the sampled tokens: -r log pi, mean over a reply's tokens,
    then summed over steps by their weights [B]. Value and gradient are right in expectation:
    E_old[r log pi] = E_pi[log pi]."""
    return -(token_mean(log_ratio(new, old, mask).exp() * new.where(mask, 0.0), mask) * weights).sum()


if __name__ == "__main__":
    main(Config, train, __doc__)

"""LOOP: token-level PPO on leave-one-out advantages of whole episodes; no critic.

    python -m baselines.loop --env vlgym/NumberLine-v0 --group 4

The method (Chen et al., 2025, arXiv 2502.01600; VL-DAC eq. 2): K episodes are played from each start state; each has
the advantage of its return over the mean of the K - 1 others, and all its tokens share it. The clipped objective is
averaged over the tokens of an episode and then over episodes. Returns are not divided by their deviation, there is no
KL, and episodes whose advantage is nearly zero are left out.

Departures from the source: episodes are discounted if `--gamma` is below 1 (the source has final rewards only); the
ratio is clipped to [1 - eps, 1 + eps] as in its paper, not to [1 / (1 + eps), 1 + eps] as in its code; all K episodes
are finished before the update, where the source stops the slowest; the learning rate falls by a cosine; `pi_old` is
noted while sampling.

A rollout is one episode of every environment, so updates differ in length; compare runs by environment steps
(`--env-steps`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vlgym.errors import UserError

from .learning import losses
from .learning.collect import Batch, GroupCollector
from .learning.config import RunConfig
from .learning.session import Session
from .learning.training import Learner, Stats, main
from .runs import folder

SMALLEST_ADVANTAGE = 0.01  # of LOOP: episodes below it teach nothing


@dataclass(frozen=True)
class Config(RunConfig):
    """Train a vision-language model by LOOP.

    Writes checkpoints, log.jsonl, TensorBoard files and curve.png to its run folder.
    """

    group: int = 4
    """Episodes played from each start state (K); --num-envs is a multiple of it. The source: 6."""
    minibatch: int = 16
    """Episodes per gradient step. The source: 32."""
    clip: float = 0.2
    """PPO's clip range. The source: 0.1."""
    gamma: float = 1.0
    """Discount within an episode's return."""
    kl_coef: float = 0.0
    """Weight of the KL to the reference; LOOP has none, the paper's comparison takes 0.05."""

    def resolve(self) -> Any:
        """Fill in what depends on the model, and check ranges."""
        config = super().resolve()
        config.require_positive("clip")
        config.require_share("gamma")
        if config.group < 2:
            raise UserError(f"--group {config.group} must be >= 2: episodes are compared within their group.")
        folder.share_of(config.num_envs, config.group, "--num-envs", "groups of --group")
        if config.double_buffer:
            raise UserError(f"--double-buffer is not for {type(self).__module__.rsplit('.', 1)[-1]}; leave it out.")
        return config


class LOOP(Learner):
    """One update: `epochs` passes over the episodes of one rollout."""

    name = "LOOP"
    command = "baselines.loop"
    Config = Config

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        c, world = self.config, session.world
        folder.share_of(session.num_envs, c.group, "the environments of a process,", "groups of --group")

        def make_env(index: int) -> Any:
            # All environments of a group are of one id.
            return session.make_env((world.rank * session.num_envs + index) // c.group - world.rank * session.num_envs)

        self.collector = GroupCollector(
            [make_env(i) for i in range(session.num_envs)], session.policy, group=c.group, gamma=c.gamma,
            advantage=self.advantage, shaper=session.make_shaper(c.gamma), builder=session.builder, remake=make_env,
            world=world,
        )  # fmt: skip

    def advantage(self, returns: Tensor) -> Tensor:
        """[G, K] returns -> [G, K] advantages."""
        return losses.leave_one_out(returns)

    def teaches(self, advantages: Tensor) -> Tensor:
        """Which episodes are learnt from, bool of the same shape."""
        return advantages.abs() >= SMALLEST_ADVANTAGE

    def train_on(self, batch: Batch, update: int) -> dict[str, float]:
        """Learn from one rollout; return the means of the losses."""
        stats: Stats = defaultdict(list)
        lr = self.set_learning_rate(update)
        tokens = batch.mask.sum(-1)
        self.episode_tokens = torch.empty(len(tokens), device=tokens.device)
        for unit in batch.units:
            self.episode_tokens[unit] = tokens[unit].sum().float()
        used = self.teaches(torch.stack([batch.advantages[unit[0]] for unit in batch.units]))
        stats["rollout/used_episodes"].append(float(used.float().mean()))
        for _ in range(self.config.epochs):
            for rows, size in self.minibatches(batch):
                kept = rows[self.teaches(batch.advantages[rows]).to(rows.device)]  # the order is the host's
                if len(kept) or self.session.world.size > 1:
                    self.policy_step(batch, kept, size, stats)
        stats.setdefault("policy/grad_norm", [0.0])  # no group's returns differed
        return self.means(stats, lr)

    def weights(self, batch: Batch, rows: Tensor, size: int) -> Tensor:
        """Every token of an episode counts alike, and every episode of the minibatch."""
        return batch.mask[rows].sum(-1) / self.episode_tokens[rows] / size


if __name__ == "__main__":
    main(LOOP, __doc__)

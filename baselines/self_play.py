"""Self-play: VL-DAC on games of several agents. The model holds every seat, or one against the pool, and each of its
turns is data.

    python -m baselines.self_play --env vlgym/KuhnPoker-v0 --pool.past 0.3

An update plays whole games: at each of --num-envs tables until --rollout-steps turns have been taken there. The pool
holds the model as it was after earlier updates, and the game's own players; at the end its members are rated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch

from vlgym.errors import UserError

from . import vldac
from .learning import losses
from .learning.batch import Batch, pack
from .learning.collect import episode_metrics, rollout_metrics
from .learning.command import main
from .learning.games import FOLDER, Games, Pool, PoolOptions, rate_pool
from .learning.run import Run, Update
from .vldac import step_gae


@dataclass(frozen=True)
class Config(vldac.Config):
    """Train a vision-language model by self-play."""

    command: ClassVar[str] = "baselines.self_play"

    pool: PoolOptions = field(default_factory=PoolOptions)
    """Opponents."""

    def resolve(self) -> Self:
        """Fill in what depends on the model, and check ranges."""
        config = super().resolve()
        config.pool.validate()
        if config.envs != "local":
            raise UserError("Self-play opens its tables in this process; it does not go with --envs.")
        if config.curriculum is not None:
            raise UserError("Self-play's pool sets the strength of the opponents; it does not go with --curriculum.")
        return config


def train(config: Config) -> Run[vldac.Config]:
    """Train a model, or go on with a run; return the run, closed."""
    return vldac.train(config, SelfPlay)


class SelfPlay(vldac.VLDAC):
    """VL-DAC's learner with whole games for rollouts."""

    config: Config
    update = 0

    def make_collector(self) -> Games:
        """The tables."""
        pool = Pool(self.run.out / FOLDER, self.run.weights, self.config.pool, self.config.device)
        return Games(self.run.envs, self.run.policy, pool, shaping=self.config.reward, seed=self.config.seed)

    def make(self, update: Update) -> None:
        """Make one update, as `VLDAC` does."""
        self.update = update.number
        super().make(update)

    def finish(self) -> None:
        """Rate the pool."""
        rate_pool(self.run, self.collector)

    def collect(self) -> tuple[Batch, dict[str, float]]:
        """Play whole games, and compute one advantage per turn."""
        c, games = self.config, self.collector.play(self.update, self.config.rollout_steps)
        records = [record for game in games for record in game]
        if not records:
            raise UserError("No game came to its end in this update; see the failures of the environments above.")
        engine = self.run.policy.engine
        batch = pack(records, engine.family.pad_id)
        device = batch.hidden.device
        column = {
            name: torch.tensor([[bool(getattr(record, name))] for record in records], device=device)
            for name in ("terminated", "truncated")
        }
        cut = [at for at, record in enumerate(records) if record.truncated and not record.terminated]
        self.value.fit(batch.hidden)
        with torch.no_grad():
            values = self.steady(batch.hidden)[:, None]
            final = torch.zeros_like(values)
            if cut:
                prompts = [engine.family.encode(records[at].final_messages or []) for at in cut]
                final[torch.tensor(cut, device=device), 0] = self.steady(engine.last_hidden(prompts))
        rewards = torch.tensor(self.collector.rewards(games), device=device)[:, None]
        advantages, returns = step_gae(
            rewards, values, values.new_zeros(1), column["terminated"], column["truncated"], final,
            gamma=c.gamma, lam=c.gae_lambda,
        )  # fmt: skip
        batch.advantages = losses.normalise_advantages(advantages[:, 0])
        batch.returns, batch.values = returns[:, 0], values[:, 0]
        ended = [(game[-1].success, sum(record.reward for record in game)) for game in games]
        metrics = episode_metrics(ended) | rollout_metrics(records, batch)
        metrics["value/explained_variance"] = losses.explained_variance(batch.values, batch.returns)
        metrics["pool/size"] = float(len(self.collector.pool.members))
        for kind in ("past", "fixed"):
            theirs = [sum(record.reward for record in game) for game in games if game[0].part.startswith(kind)]
            if theirs:
                metrics[f"pool/return_{kind}"] = sum(theirs) / len(theirs)
        return batch, metrics


if __name__ == "__main__":
    main(Config, train, __doc__)

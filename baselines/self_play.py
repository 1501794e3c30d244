"""Self-play: VL-DAC on games of several agents; the model has every seat, or one against the pool.

    python -m baselines.self_play --env vlgym/KuhnPoker-v0 --pool.past 0.3

An update plays whole games: at each of --num-envs tables until --rollout-steps turns have been
taken there. The pool holds the model after earlier updates, and the game's own players; at the end
it is rated.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Self

from vlgym.errors import UserError

from . import vldac
from .learning.batch import Batch
from .learning.collect import Rows
from .learning.command import main
from .learning.game_collector import POOL_FOLDER, GameCollector, Pool, PoolOptions, rate_pool
from .learning.run import Run


@dataclass(frozen=True)
class Config(vldac.Config):
    """Train a vision-language model by self-play."""

    command: ClassVar[str] = "baselines.self_play"

    pool: PoolOptions = field(default_factory=PoolOptions)
    """Opponents."""

    def resolve(self) -> Self:
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

    def make_collector(self) -> GameCollector:
        """The tables."""
        pool = Pool(self.run.out / POOL_FOLDER, self.run.weights, self.config.pool, self.config.device)
        return GameCollector(self.run.envs, self.run.policy, pool, shaping=self.config.reward, seed=self.config.seed)

    def play(self) -> tuple[Batch, Rows, dict[str, float]]:
        """Play whole games; return the batch, the turns one after the other and the metrics."""
        games = self.collector.play(self.run.state.update + 1, self.config.rollout_steps)
        records = [record for game in games for record in game]

        # No game is left where the environments failed.
        if not records:
            raise UserError("No game came to its end in this update; see the failures of the environments above.")
        ended = [(game[-1].success, sum(record.reward for record in game)) for game in games]
        batch, metrics = self.collector.make_batch(records, ended)

        # Returns against each kind of opponent: they tell more than those against itself.
        metrics["pool/size"] = float(len(self.collector.pool.members))
        for kind in ("past", "fixed"):
            played = [game for game in games if game[0].part.startswith(kind)]
            theirs = [sum(record.reward for record in game) for game in played]
            if theirs:
                metrics[f"pool/return_{kind}"] = sum(theirs) / len(theirs)
        return batch, [[record] for record in records], metrics

    def finish(self) -> None:
        """Rate the pool."""
        rate_pool(self.run, self.collector)


if __name__ == "__main__":
    main(Config, train, __doc__)

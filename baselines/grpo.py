"""GRPO: group-relative advantages of whole episodes, divided by the group's deviation; no critic.

    python -m baselines.grpo --env vlgym/NumberLine-v1 --group 4

The method (Shao et al., 2024, arXiv 2402.03300), for episodes of several turns: K episodes are
played from each start state; the advantage of each is its return less the group's mean, over the
group's standard deviation, shared by all its tokens. The clipped token objective and the k3 KL to
the reference are averaged over the tokens of an episode and then over episodes. Groups whose
returns are equal have the advantage 0.

Departures from the source: episodes instead of single answers, so an observation's tokens are left
out of the mean; the reference is never renewed; the learning rate falls by a cosine. As in LOOP,
compare runs by environment steps (`--env-steps`).
"""

from dataclasses import dataclass
from typing import ClassVar

from . import loop
from .learning import losses
from .learning.command import main
from .learning.run import Run


@dataclass(frozen=True)
class Config(loop.Config):
    """Train a vision-language model by GRPO."""

    algorithm: ClassVar[str] = "GRPO"
    command: ClassVar[str] = "baselines.grpo"

    kl_estimator: losses.KLEstimator = "k3"
    """Estimator of the per-token KL. The source: k3."""
    kl_coef: float = 0.04
    """Weight of the KL to the reference. The source: 0.04."""


def train(config: Config) -> Run[loop.Config]:
    """Train a model, or go on with a run; return the run, closed."""
    return loop.train(config, GRPO)


class GRPO(loop.LOOP):
    """LOOP's learner with other advantages; no episode is left out, because the KL counts."""

    advantage = staticmethod(losses.group_relative)
    smallest_advantage = 0.0


if __name__ == "__main__":
    main(Config, train, __doc__)

"""Largest difference of the sampler's log-probabilities from the scorer's, and which of them an update takes for the
old ones.

Replies are sampled by one computation and scored by another: other shapes, other kernels, perhaps merged weights.
Rounding makes the two differ a little; a bug makes them differ a lot, and then every ratio of the update is wrong. So
every update measures the difference before its first gradient step (`batch.check_log_probs`), and a run whose
difference is beyond a bound ends.

The old log-probabilities are those noted while sampling. With `--check.old-log-probs scorer` they are the scorer's: the
ratios of the first gradient step are then 1 but for the rounding of other batches, and what sampler and scorer differ
by is made up for by truncated importance weights (Ionides, 2008, "Truncated importance sampling", Journal of
Computational and Graphical Statistics 17(2); for replies of another engine than the learner's: Yao et al., 2025, "Your
efficient RL framework secretly brings you off-policy RL training").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from vlgym.errors import FailedError, check_choice, check_number

MAX_GAP = {"float32": 1e-3, "bfloat16": 0.1}
"""Bounds by the type of the weights, far above what rounding was measured to do (docs/benchmarks.md)."""


@dataclass(frozen=True)
class CheckOptions:
    """Agreement of the sampler's and the scorer's log-probabilities."""

    max_gap: float | None = None
    """Mean difference per token beyond which the run ends; default 0.001 in float32, 0.1 in bfloat16; 0: no bound."""
    old_log_probs: str = "sampler"
    """The old log-probabilities of an update: sampler (as noted while sampling) or scorer (computed again)."""
    importance_cap: float = 2.0
    """With those of the scorer: weigh each token by its probability there over that at sampling, but by no more than
    this; 0 for no weights."""

    def resolve(self, dtype: str) -> CheckOptions:
        """The options with the bound filled in, for a model of that type."""
        return replace(self, max_gap=MAX_GAP.get(dtype) if self.max_gap is None else self.max_gap)

    def validate(self) -> None:
        """Check ranges.

        Raises:
            UserError: a value is out of its range.
        """
        check_choice("--check.old-log-probs", self.old_log_probs, ("sampler", "scorer"))
        check_number("--check.max-gap", self.max_gap or 0.0, 0, hint="0 sets no bound.")
        check_number("--check.importance-cap", self.importance_cap, 0, hint="0 gives no weights.")


def require_agreement(gap: Mapping[str, float], options: CheckOptions, dtype: str | None) -> None:
    """Raise `FailedError` where the mean difference is beyond the bound, or no number.

    Args:
        gap: mean, p95 and max of the absolute differences, by the names that are logged.
        options: the bound, resolved.
        dtype: the type of the weights, for the advice.
    """
    mean, p95, largest = (gap[f"rollout/logp_diff_{name}"] for name in ("mean", "p95", "max"))
    if not options.max_gap or mean <= options.max_gap:
        return
    finer = "" if dtype == "float32" else f", or {dtype} is too coarse for this model (try --dtype float32)"
    raise FailedError(
        f"Sampler and scorer disagree: their log-probabilities differ by {mean:.2g} per token on average (95 % by less "
        f"than {p95:.2g}, at most {largest:.2g}), which is more than --check.max-gap {options.max_gap:g}. One of them "
        f"has other weights or sees other pictures, a bug{finer}. If they differ on purpose, go on with a larger "
        "--check.max-gap and --check.old-log-probs scorer."
    )

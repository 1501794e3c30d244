"""The learners' equations a second time: a loop over environments, steps and tokens.

Nothing here reads `baselines.learning`; log-probabilities and states come from an engine, row by row.
"""

import math
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from bandit import right_arm
from torch import Tensor


def arm_of(learner: Any, sample: Any) -> str | None:
    text = learner.weights.family.decode(sample.ids.tolist())
    return next((letter for letter in text if letter in "+-"), None)


def watch_rollout(learner: Any) -> SimpleNamespace:
    """Note a learner's next rollout: records `rows` [T][N]; the states `after` them [T][N], or None."""
    seen, play = SimpleNamespace(), learner.collector.play

    def state(messages: Any) -> Tensor:
        engine = learner.weights.engine
        return engine.last_hidden([engine.family.encode(messages)])

    def noted(steps: int) -> Any:
        rows = seen.rows = play(steps)
        waiting = [turn.messages for turn in learner.collector.runner.turns()]
        seen.after = []
        for t, row in enumerate(rows):
            coming = waiting if t + 1 == len(rows) else [record.messages for record in rows[t + 1]]
            seen.after.append(
                [
                    None if r.terminated else state(r.final_messages if r.truncated else coming[n])
                    for n, r in enumerate(row)
                ]
            )
        return rows

    learner.collector.play = noted
    return seen


def advantages_and_returns(learner: Any, seen: Any, *, penalty: float) -> tuple[list[float], list[float]]:
    """GAE by its definition, in the order of a batch's rows: a sum of errors of the value up to the
    episode's end, each step discounted by gamma * lambda once more."""
    c, steps, count = learner.config, len(seen.rows), len(seen.rows[0])
    advantages, returns = ([0.0] * (steps * count) for _ in range(2))
    for n in range(count):
        surprises, values = [], []
        for t in range(steps):
            record = seen.rows[t][n]
            arm = arm_of(learner, record.extra)
            right = right_arm(int(re.search(r"\d+", record.text)[0]))
            reward = -penalty if arm is None else float(arm == right)
            after = seen.after[t][n]
            with torch.no_grad():
                values.append(float(learner.steady(record.extra.hidden[None])))
                coming = 0.0 if after is None else float(learner.steady(after))
            surprises.append(reward + c.gamma * coming - values[t])
        for t in range(steps):
            total, share = 0.0, 1.0
            for k in range(t, steps):
                total += share * surprises[k]
                share *= c.gamma * c.gae_lambda
                if seen.rows[k][n].terminated or seen.rows[k][n].truncated:
                    break
            advantages[t * count + n], returns[t * count + n] = total, total + values[t]
    return advantages, returns


def normalised(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return [(value - mean) / deviation for value in values]


def log_probs(engine: Any, samples: Sequence[Any]) -> list[Tensor]:
    return [
        engine.score([sample.prompt], sample.ids[None], torch.ones(1, len(sample.ids), dtype=torch.bool))[0]
        for sample in samples
    ]


def log_prob(learner: Any, sample: Any) -> float:
    return float(log_probs(learner.weights.engine, [sample])[0].detach().sum())


def clipped(ratio: Tensor, advantage: float, clip: float) -> Tensor:
    return min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)


def token_losses(new: Tensor, old: Tensor, advantage: float, clip: float) -> Tensor:
    return torch.stack([-clipped((a - b).exp(), advantage, clip) for a, b in zip(new, old, strict=True)])


def token_kls(new: Tensor, ref: Tensor, estimator: str) -> Tensor:
    d = ref - new
    return {"k1": -d, "k2": d * d / 2, "k3": d.exp() - d - 1}[estimator]


def close(gradients: Sequence[Tensor], loss: Tensor, parameters: Sequence[Tensor]) -> None:
    """Check that gradients are those of a loss, far more closely than they are large."""
    expected = torch.autograd.grad(loss, list(parameters), retain_graph=True, allow_unused=True)
    whole = [torch.zeros_like(p) if g is None else g for g, p in zip(expected, parameters, strict=True)]
    a, b = (torch.cat([g.flatten() for g in tensors]) for tensors in (list(gradients), whole))
    assert float(b.norm()) > 0
    assert float((a - b).norm()) < 1e-3 * float(b.norm())

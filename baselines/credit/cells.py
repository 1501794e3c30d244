"""The cells of the bench: an environment, a policy, and how much is played."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import vlgym
from vlgym.registry.making import unwrap

from ..learning.losses import explained_variance
from ..runs.folder import read_checkpoint_record, write_record
from .episodes import EpisodeBatch, Truth, noisy_oracle, play, sample_truth
from .estimators import Estimator, fit_values
from .lines import TinyPolicy, draw_starts, noisy, play_lines, sum_gradient, true_gradient
from .measures import cosine, measure

Estimators = Mapping[str, Estimator]
# The tiny model in its run: gradient steps, policy [6, 6], states [36, H], gradients [36, 36].
Point = tuple[int, Tensor, Tensor, Tensor]
SIZE, LINE = 4, "NumberLine"  # episodes of a group; the environment whose truth is exact
SLOW = ("bi-level GAE", "ArCHer")  # estimators without cosines
# Points of the tiny model's supervised run: the mean probability of a right move there.
POINTS = {"tiny, early": 0.6, "tiny, middle": 0.7, "tiny, late": 0.8}
# Other policies: the share of turns in which a random legal action stands for the oracle's.
ERRORS = {"half random": 0.5, "fifth random": 0.2, "random": 1.0}
ENVS: dict[str, tuple[tuple[str, Any], ...]] = {
    "vlgym/EZPoints-v1": (), "vlgym/TicTacToe-v0": (("opponents", "random"),),
    "vlgym/SokobanDrawn-v0": (("level", 0),), "vlgym/BabyAIGoTo-v0": (), "vlgym/ScreensGo-v0": (),
    "vlgym/OneRoomS6Fast-v1": (),
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A policy of `POINTS` or `ERRORS` in NumberLine, or in the environment of an id.

    Attributes:
        groups: start groups that are scored; critics are fitted to as many earlier ones.
        curve: episodes of the batches whose gradients are compared; repeats: batches of each size.
        branches, turns: of `sample_truth`.
    """

    env: str
    policy: str
    targets: int = 0
    kwargs: tuple[tuple[str, Any], ...] = ()
    groups: int = 64
    curve: tuple[int, ...] = ()
    repeats: int = 4
    branches: int = 8
    turns: int = 3

    @property
    def name(self) -> str:
        """The name in rows and tables."""
        targets = f" {self.targets}" if self.targets else ""
        return f"{self.env.removeprefix('vlgym/')}{targets}, {self.policy}"


STANDARD = (
    *(Cell(LINE, policy, targets) for policy in ERRORS for targets in (1, 2, 4, 8)),
    *(Cell(LINE, policy, targets, curve=(32, 128, 512)) for policy in POINTS for targets in (1, 2, 4, 8)),
    *(Cell(env, policy, kwargs=kwargs, groups=8) for policy in ERRORS for env, kwargs in ENVS.items()),
)
QUICK = (
    *(Cell(LINE, "half random", targets) for targets in (1, 4)),
    *(Cell(LINE, "tiny, middle", targets, curve=(32, 128), repeats=2) for targets in (1, 4)),
)


def find_points(folder: Path, wanted: set[str], tell: Callable[[str], object]) -> dict[str, Point]:
    """Return points of the tiny model's run; train what the folder does not have."""
    file = folder / "tiny.json"
    known = read_checkpoint_record(file) if file.is_file() else {}
    left = {name: least for name, least in POINTS.items() if name in wanted - known.keys()}

    # Each point is the first step that reaches its share.
    model = TinyPolicy() if left else None
    while model and left and model.steps < 600:
        model.train(model.steps + 20)
        plus = model.plus()
        share = float((plus.flatten()[model.keys] - 1 + model.right).abs().mean())
        tell(f"tiny model, step {model.steps}: a move is right with probability {share:.2f}")
        for name in [name for name, least in left.items() if share >= least]:
            del left[name]
            parts = (plus, model.states(), model.gradients())
            known[name] = [model.steps, *(part.tolist() for part in parts)]
        write_record(file, known)
    return {name: (steps, *map(torch.tensor, parts)) for name, (steps, *parts) in known.items()}  # type: ignore[misc]


def run_cell(cell: Cell, estimators: Estimators, points: Mapping[str, Point]) -> dict[str, Any]:
    """Return a cell's row."""
    begun = time.process_time()
    row = {"cell": cell.name, "targets": cell.targets, "policy": cell.policy}
    row |= run_line(cell, estimators, points) if cell.env == LINE else run_branched(cell, estimators)
    return row | {"seconds": round(time.process_time() - begun, 1)}


def run_line(cell: Cell, estimators: Estimators, points: Mapping[str, Point]) -> dict[str, Any]:
    """Run a cell of NumberLine: exact truth, and cosines of the tiny model's policy gradients."""
    steps, table, states, gram = points.get(cell.policy) or (0, None, None, None)
    plus = noisy(ERRORS[cell.policy]) if table is None else table.double().numpy()
    batches = max([cell.groups, *(size // SIZE * cell.repeats for size in cell.curve)])
    starts = [draw_starts(cell.targets, 10_000 * seed, batches) for seed in range(3)]
    pools = [play_lines(each, plus, size=SIZE, seed=seed) for seed, each in enumerate(starts)]

    def take(part: slice) -> EpisodeBatch:
        scored, earlier = (replace(pool.episodes.choose(part), states=states) for pool in pools[:2])
        return replace(scored, earlier=earlier)

    truth = Truth(*(part[:, : cell.groups] for part in pools[0].truth))
    row = judge_estimators(estimators, take(slice(cell.groups)), truth)
    if gram is None:
        return row | {"truth": "exact"}

    # Batches of one size, and the episodes of their critics, have nothing in common.
    fast = {name: each for name, each in estimators.items() if name not in SLOW}
    target = true_gradient(pools[2], plus)
    curve: dict[str, dict[int, list[float]]] = {name: {} for name in fast}
    explained: dict[int, list[float | None]] = {size: [] for size in cell.curve}
    for size, at in ((size, at) for size in cell.curve for at in range(cell.repeats)):
        batch = take(slice(at * size // SIZE, (at + 1) * size // SIZE))
        for name, estimate in apply_estimators(fast, batch).items():
            own = sum_gradient(estimate, batch, plus)
            curve[name].setdefault(size, []).append(cosine(own, target, gram.double()))
        explained[size].append(explain(batch))
    return row | {"truth": "exact", "steps": steps, "curve": curve, "explained": explained}


def run_branched(cell: Cell, estimators: Estimators) -> dict[str, Any]:
    """Run a cell of another environment: truth by branches of saved states; no critics."""
    kwargs: Any = dict(cell.kwargs)
    env, eyes = (unwrap(vlgym.make(cell.env, modality=x, **kwargs)) for x in ("none", "image"))
    policy = noisy_oracle(ERRORS[cell.policy])
    episodes, turns = play(env, eyes, policy, groups=cell.groups, size=SIZE, seed=0)
    truth = sample_truth(env, episodes, turns, policy, branches=cell.branches, most=cell.turns)
    env.close()
    eyes.close()
    return judge_estimators(estimators, episodes, truth) | {"truth": f"2 x {cell.branches} branches"}


def apply_estimators(estimators: Estimators, episodes: EpisodeBatch) -> dict[str, Tensor]:
    """Return the estimates of those estimators that have what they need."""
    estimates = {name: estimator(episodes) for name, estimator in estimators.items()}
    return {name: torch.as_tensor(x).double() for name, x in estimates.items() if x is not None}


def explain(episodes: EpisodeBatch) -> float | None:
    """Return the explained variance of the learnt critic on these episodes; None without one."""
    if episodes.states is None:
        return None
    return explained_variance(fit_values(episodes)[episodes.mask], episodes.to_go[episodes.mask])


def judge_estimators(estimators: Estimators, episodes: EpisodeBatch, truth: Truth) -> dict[str, Any]:
    """Compare every estimator with the truth."""
    estimates = apply_estimators(estimators, episodes)
    measures = {name: measure(each, truth, episodes) for name, each in estimates.items()}
    length = float(episodes.mask.sum(-1).double().mean())
    parts = {"episodes": episodes.returns.numel(), "length": length, "critic": explain(episodes)}
    return parts | {"measures": measures}

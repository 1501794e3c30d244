"""Speed of VL-DAC's loop (rollout, reference, update) with the fast engine over the plain one, in
one process.

    python tests/benchmarks/learner.py

The plain engine, of families without a fast path, is the library's `generate` and one padded
forward pass. Both begin with the same warm-started policy, and no update is kept, so replies have
the same length throughout.
"""

import copy
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from report import finish, make_parser, table

from baselines.engine.engine import ModelPolicy, make_engine
from baselines.learning.batch import log_probs
from baselines.learning.collect import Environments
from baselines.learning.state import Weights
from baselines.learning.warm_start import WarmConfig, warm_start
from baselines.models.family import Family
from baselines.models.load import load_family
from baselines.models.lora import export_merged
from baselines.runs.distributed import ALONE
from baselines.vldac import VLDAC, Config

ENVS = ("vlgym/NumberLine-v1", "vlgym/OneRoom-v1")
"""One with few states, which many rows of a batch share; one in which every frame is new."""

COLUMNS = ("env_steps_per_s", "env_steps_per_cpu_s", "rollout_s", "reference_s", "update_s", "reply_tokens")


class Bench:
    """One way of running an update: what a learner uses of a run, with its own engines."""

    def __init__(self, config: Config, family: Family, max_new_tokens: int) -> None:
        self.config, self.world, self.state = config, ALONE, SimpleNamespace(env_steps=0)
        self.envs, self.order = config.make_environments(), torch.Generator().manual_seed(0)
        engine = make_engine(family, max_new_tokens=max_new_tokens)
        self.weights: Any = Weights(engine, keep_reference=True)
        self.policy = ModelPolicy(self.weights.engine, torch.Generator().manual_seed(0))
        self.learner = VLDAC(self)  # type: ignore[arg-type]
        self.before = copy.deepcopy(family.model.state_dict())

    def update(self) -> dict[str, float]:
        """One timed update; the weights are put back afterwards."""
        times, cpu = [time.perf_counter()], time.process_time()
        self.weights.engine.forget()
        batch, rows, stats = self.learner.play()
        self.learner.compute_advantages(batch, rows, self.learner.compute_values(batch, rows))
        times.append(time.perf_counter())
        batch.ref = log_probs(self.weights.reference, batch, self.config.passes)
        times.append(time.perf_counter())
        self.learner.update(batch, self.config.value_warmup + 1)
        times.append(time.perf_counter())
        cpu = time.process_time() - cpu
        self.weights.family.model.load_state_dict(self.before)
        steps, seconds = len(batch.samples), [later - earlier for earlier, later in pairwise(times)]
        speeds = (steps / (times[-1] - times[0]), steps / cpu)
        return dict(zip(COLUMNS, (*speeds, *seconds, stats["rollout/reply_tokens"]), strict=True))


def measure(env_id: str, updates: int) -> dict[str, dict[str, float]]:
    """Return the mean figures of each engine, after an update that warms up."""
    config = replace(Config(env=env_id), seed=0).resolve()
    family = load_family("tiny")
    engine = make_engine(family, max_new_tokens=13)
    warm = WarmConfig(steps=60, samples=1024, reading=1.0, check_every=60, val_episodes=1)
    warm_start(engine, Environments([env_id], {}, 1), warm, seed=0)
    with tempfile.TemporaryDirectory() as name:
        folder = str(export_merged(family, Path(name) / "model"))
        benches = {
            each: Bench(config, load_family(folder, plain=each == "plain"), engine.max_new_tokens)
            for each in ("fast", "plain")
        }
        rows: dict[str, list[dict[str, float]]] = {each: [] for each in benches}
        for number in range(updates + 1):
            for each, bench in benches.items():
                row = bench.update()
                rows[each] += [row] if number else []
    for bench in benches.values():
        bench.envs.close()
    return {each: {key: sum(row[key] for row in sample) / updates for key in COLUMNS} for each, sample in rows.items()}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--updates", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(2)
    body, lines = f"Tiny model, {args.updates} timed updates of each engine, alternately, 2 threads.\n\n", []
    for env_id in ENVS:
        means = measure(env_id, args.updates)
        ratios = {key: means["fast"][key] / means["plain"][key] for key in COLUMNS}
        body += (
            f"`{env_id}`: the fast engine makes **{ratios['env_steps_per_s']:.1f}** times as many environment steps "
            f"per second ({ratios['env_steps_per_cpu_s']:.1f} per second of processor time); its rollout is "
            f"{1 / ratios['rollout_s']:.1f}, its update {1 / ratios['update_s']:.1f} times as fast.\n\n"
        )
        lines += [[f"`{env_id}`", way, *(f"{figures[key]:.2f}" for key in COLUMNS)] for way, figures in means.items()]
    page = body + table(["environment", "engine", *COLUMNS], lines)
    finish("learner", "Speed of the learner", page, ["vlgym", "torch", "transformers"])


if __name__ == "__main__":
    main()

"""What arrives of small steps in half precision: at the weights, at the sampler's copy of adapters, at the scorer.

    python tests/benchmarks/half_precision.py --write

Everything is on the tiny model after a warm start on NumberLine, on a CPU with one thread. "Before" is what the
learners did until float32 masters and sums came; it is made again here, so that both are of one run. Times are ratios
within a run; no GPU is used. Warm start and finished parts are kept in `--runs`, so it may be stopped at any time.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from report import finish, parse_write, table
from torch import Tensor, nn

from baselines import sft, vldac
from baselines.engine.engine import Engine
from baselines.engine.policy import ModelPolicy, Sample, pad_rows
from baselines.learning import losses
from baselines.learning.environments import parsers_of
from baselines.learning.precision import masters_of
from baselines.learning.warm_start import WarmConfig
from baselines.models import lora
from baselines.models.family import Family
from baselines.models.load import load_family
from vlgym import make
from vlgym.rollout import Runner

ENV, LIMIT = "vlgym/NumberLine-v0", 20
FULL_RATE, ADAPTER_RATE, RANK = 1e-6, 5e-5, 16  # the defaults for published models and their adapters
STEPS = (1, 2, 4, 8, 16, 32, 64)
GRADIENT_STEPS = 48
BIG = "Qwen2-VL-7B"
LINEAR_7B = 28 * (2 * 3584 * 3584 + 2 * 3584 * 512 + 3 * 3584 * 18944)  # weights of the adapted layers, by its config
BEFORE, NONE, MODEL, FLOAT32 = "before: apart, rounded twice", "none", "model", "float32"
SPLIT, STOCHASTIC = "two bfloat16 parts (not offered)", "stochastic rounding (not offered)"


# ---- full fine-tuning ------------------------------------------------------------------------------------------------


def plain_optimizer(parameters: Any, config: Any) -> torch.optim.Optimizer:
    """AdamW on the model's own weights, as it was before."""
    return torch.optim.AdamW(parameters, lr=config.policy_lr, betas=(0.9, 0.95), weight_decay=0.0, foreach=True)


def moved(model: Path, dtype: str, *, masters: bool) -> dict[str, float]:
    """Train all weights for `GRADIENT_STEPS` steps by VL-DAC; return what of them changed, and by how much."""
    config = vldac.Config(
        env=ENV, model=str(model), dtype=dtype, lr=FULL_RATE, final_lr=1.0, updates=6, num_envs=8, rollout_steps=8,
        minibatch=16, epochs=2, value_warmup=0, eval_episodes=0, save_every=100, max_new_tokens=LIMIT, threads=1,
    )  # fmt: skip
    first = dict(load_family(str(model), dtype=dtype).model.named_parameters())
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(vldac, "policy_optimizer", vldac.policy_optimizer if masters else plain_optimizer),
    ):
        run = vldac.train(replace(config, out=Path(folder) / "run"))
    names = {id(p): name for name, p in run.weights.family.model.named_parameters()}
    own = list(run.weights.parameters)
    held = masters_of(run.kept.optimizers.named["policy"])
    trained = own if held is None else held.parameters
    before = [first[names[id(p)]] for p in own]
    return {
        "share": share([x != y for x, y in zip(trained, before, strict=True)]),
        "copy": share([x != y for x, y in zip(own, before, strict=True)]),
        "mean": mean([(x.double() - y.double()).abs() for x, y in zip(trained, before, strict=True)]),
    }


def share(parts: list[Tensor]) -> float:
    """Of all elements, those that are set."""
    return sum(int(part.sum()) for part in parts) / sum(part.numel() for part in parts)


def mean(parts: list[Tensor]) -> float:
    """Of all elements."""
    return sum(float(part.detach().sum()) for part in parts) / sum(part.numel() for part in parts)


# ---- adapters --------------------------------------------------------------------------------------------------------


class Split(nn.Module):
    """A linear layer whose weights are the sum of two bfloat16 numbers."""

    def __init__(self, total: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.high = total.bfloat16()
        self.low, self.bias = (total - self.high.float()).bfloat16(), bias

    def forward(self, x: Tensor) -> Tensor:
        """Both products are rounded, and their sum."""
        return F.linear(x, self.high, self.bias) + F.linear(x, self.low)


def stochastic(total: Tensor, seed: int = 0) -> Tensor:
    """Round float32 to bfloat16 up or down at random, right on average."""
    noise = torch.randint(0, 2**16, total.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.int32)
    return ((total.view(torch.int32) + noise) & ~0xFFFF).view(torch.float32).bfloat16()


def total_of(layer: Any) -> Tensor:
    """Base and adapter of a layer in float32."""
    up, down = layer.lora_B[lora.NAME].weight, layer.lora_A[lora.NAME].weight
    return torch.addmm(layer.base_layer.weight.float(), up, down, alpha=layer.scaling[lora.NAME])


@torch.no_grad()
def sampler_of(family: Family, way: str) -> Family:
    """The model as a way to sample has it."""
    if way in (NONE, BEFORE):
        return family
    if way in (MODEL, FLOAT32):
        return lora.merged_copy(family, float32=way == FLOAT32)

    def plain(layer: Any) -> nn.Module:
        total, bias = total_of(layer), layer.base_layer.bias
        if way == SPLIT:
            return Split(total, bias)
        linear = nn.Linear(total.shape[1], total.shape[0], bias=False)
        linear.weight, linear.bias = nn.Parameter(stochastic(total), requires_grad=False), bias
        return linear

    return lora._rebuilt(family, plain)  # type: ignore[arg-type]


@contextmanager
def as_way(family: Family, way: str) -> Iterator[None]:
    """For `BEFORE`, let the adapted layers add as peft's own do."""
    layers = [layer for _, layer in lora._adapted(family)] if way == BEFORE else []
    kinds = [type(layer) for layer in layers]
    for layer in layers:
        layer.__class__ = lora.Adapted
    try:
        yield
    finally:
        for layer, kind in zip(layers, kinds, strict=True):
            layer.__class__ = kind


@dataclass
class Rollout:
    """Stored replies with their advantages."""

    samples: list[Sample]
    ids: Tensor
    mask: Tensor
    old: Tensor
    advantages: Tensor

    @property
    def prompts(self) -> list[Any]:
        """One per reply."""
        return [sample.prompt for sample in self.samples]

    @torch.no_grad()
    def scores(self, family: Family) -> Tensor:
        """Log-probabilities of all tokens, [tokens]."""
        return Engine(family, max_new_tokens=LIMIT).score(self.prompts, self.ids, self.mask)[self.mask]


def play(family: Family) -> Rollout:
    """Four steps of 32 environments."""
    engine = Engine(family, max_new_tokens=LIMIT, parsers=parsers_of([ENV], {}))
    policy, runner = ModelPolicy(engine, torch.Generator().manual_seed(0)), Runner([make(ENV) for _ in range(32)])
    records = [record for _ in range(4) for record in runner.step(policy)]
    runner.close()
    samples: list[Sample] = [record.extra for record in records]
    ids, mask = pad_rows([sample.ids for sample in samples], family.pad_id)
    old, _ = pad_rows([sample.logp for sample in samples], 0.0)
    rewards = torch.tensor([record.reward for record in records])
    return Rollout(samples, ids, mask, old, losses.normalise_advantages(rewards))


def train_adapters(family: Family, rollout: Rollout) -> Iterator[int]:
    """Gradient steps of VL-DAC's policy loss on one rollout; the number of each, after it."""
    parameters = lora.trainable_parameters(family)
    optimizer = torch.optim.AdamW(parameters, lr=ADAPTER_RATE, betas=(0.9, 0.95), weight_decay=0.0, foreach=True)
    engine, order = Engine(family, max_new_tokens=LIMIT), torch.Generator().manual_seed(0)
    for step in range(1, STEPS[-1] + 1):
        rows = torch.randperm(len(rollout.samples), generator=order)[:64]
        prompts = [rollout.samples[i].prompt for i in rows.tolist()]
        new = engine.score(prompts, rollout.ids[rows], rollout.mask[rows])
        loss = losses.token_ppo_loss(
            new, rollout.old[rows], rollout.mask[rows], rollout.advantages[rows], clip=0.2
        ).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        yield step


@torch.no_grad()
def in_weights(family: Family) -> float:
    """Share of what adapters add to the weights that is left when the sum is rounded to bfloat16."""
    kept = whole = 0.0
    for _, layer in lora._adapted(family):
        base, total = layer.base_layer.weight.float(), total_of(layer)
        kept += float(((total.bfloat16().float() - base) * (total - base)).sum())
        whole += float((total - base).square().sum())
    return kept / whole


def follow(model: Path, ways: list[str]) -> tuple[dict[str, list[float]], list[float], dict[str, dict[int, Any]]]:
    """Train adapters in float32, give them to a bfloat16 model, and compare.

    Returns:
        per way the share of the float32 model's change of log-probabilities that its own change is, after `STEPS`; the
        share in merged weights; and per way the gaps of sampled to scored log-probabilities, after the first and last.
    """
    coarse, fine = (load_family(str(model), dtype=dtype) for dtype in ("bfloat16", "float32"))
    with torch.no_grad():
        for x, y in zip(fine.model.parameters(), coarse.model.parameters(), strict=True):
            x.copy_(y)  # both begin at the same weights
    for family in (coarse, fine):
        lora.add_adapters(family, lora.LoraOptions(rank=RANK), seed=0)
    rollout = play(fine)

    def scores(way: str) -> Tensor:
        with as_way(coarse, way):
            return rollout.scores(sampler_of(coarse, way))

    first, first_fine = {way: scores(way) for way in ways}, rollout.scores(fine)
    arrived: dict[str, list[float]] = {way: [] for way in ways}
    weights, gaps = [], {way: {} for way in ways}
    for step in train_adapters(fine, rollout):
        if step not in STEPS:
            continue
        with torch.no_grad():
            for x, y in zip(lora.trainable_parameters(coarse), lora.trainable_parameters(fine), strict=True):
                x.copy_(y)
        change = rollout.scores(fine) - first_fine
        weights.append(in_weights(coarse))
        for way in ways:
            own = scores(way) - first[way]
            arrived[way].append(float((own * change).sum() / change.square().sum()))
            if step in (STEPS[0], STEPS[-1]):
                gaps[way][step] = gap(coarse, rollout, way)
    return arrived, weights, gaps


@torch.no_grad()
def gap(family: Family, rollout: Rollout, way: str) -> dict[str, float]:
    """Differences of the log-probabilities noted while a way samples, and of those that the scorer gives them."""
    with as_way(family, way):
        out = Engine(sampler_of(family, way), max_new_tokens=LIMIT).sample(
            rollout.prompts, torch.Generator().manual_seed(0)
        )
        scorer = Engine(family, max_new_tokens=LIMIT).score(rollout.prompts, out.ids, out.mask)
    difference = (scorer - out.logp).abs()[out.mask]
    return {"mean": float(difference.mean()), "p95": float(difference.quantile(0.95)), "max": float(difference.max())}


def without_adapters(model: str, dtype: str) -> dict[str, float]:
    """The gap of a model that samples with the very weights that score."""
    family = load_family(model, dtype=dtype)
    return gap(family, play(family), NONE)


@torch.no_grad()
def seconds(model: Path, dtype: str, way: str) -> float:
    """Seconds to sample 32 replies, prompts included: the best of five."""
    family = load_family(str(model), dtype=dtype)
    lora.add_adapters(family, lora.LoraOptions(rank=RANK), seed=0)
    rollout = play(family)
    engine, best = Engine(sampler_of(family, way), max_new_tokens=LIMIT), float("inf")
    for _ in range(5):
        engine.forget()
        start = time.perf_counter()
        engine.sample(rollout.prompts[:32], torch.Generator().manual_seed(0))
        best = min(best, time.perf_counter() - start)
    return best


# ---- the page --------------------------------------------------------------------------------------------------------


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/half_precision"), help="folder of what is kept")
    parser.add_argument(
        "--part", choices=["full", "adapters", "speed"], help="measure only this part, and write no page"
    )
    args = parse_write(__doc__ or "", parser)
    torch.set_num_threads(1)
    model = args.runs / "warm"
    if not (model / "warm.json").is_file():
        shutil.rmtree(model, ignore_errors=True)
        sft.run(sft.Config(out=model, threads=1, warm=WarmConfig(steps=120, target=1.0)))
    parts: dict[str, Callable[[Path], str]] = {"full": write_full, "adapters": write_adapters, "speed": write_speed}
    texts = []
    for part, write in parts.items():
        kept = args.runs / f"{part}.md"
        if not kept.is_file() and args.part in (None, part):
            kept.write_text(write(model))
        texts.append(kept.read_text() if kept.is_file() else f"({part}: not measured yet)")
    if args.part:
        print(texts[list(parts).index(args.part)])
        return
    packages = ["vlgym", "torch", "transformers", "peft"]
    finish("half_precision", "Half precision", "\n\n".join(texts), packages, args.write)


def write_full(model: Path) -> str:
    """The section on full fine-tuning."""
    arms = {
        "float32": moved(model, "float32", masters=True),
        "bfloat16, before: steps of the weights themselves": moved(model, "bfloat16", masters=False),
        "bfloat16, after: float32 masters": moved(model, "bfloat16", masters=True),
    }
    bytes_of = ("4 + 4 + 8 = 16", "2 + 2 + 4 = 8", "2 + 4 + 4 + 8 = 18")
    rows = [
        [name, f"{arm['share']:.1%}", f"{arm['copy']:.1%}", f"{arm['mean']:.2e}", size]
        for (name, arm), size in zip(arms.items(), bytes_of, strict=True)
    ]
    header = ["training of all weights", "changed", "changed in the model", "mean change", "bytes per weight"]
    return (
        f"## Full fine-tuning\n\nVL-DAC, {GRADIENT_STEPS} gradient steps at a rate of {FULL_RATE:g}: the share of the "
        "trained weights (the masters, where there are some) that differ from what they were, the share of the model's "
        "own weights, and the mean absolute change. What is below half a step of bfloat16 stays in the master until "
        "enough has come together, so few of the model's weights differ after so few steps; they follow. Bytes are "
        "computed: weights, masters, gradients, moments.\n\n" + table(header, rows)
    )


def write_adapters(model: Path) -> str:
    """The sections on adapters and on the gap."""
    ways = [BEFORE, NONE, MODEL, FLOAT32, SPLIT, STOCHASTIC]
    arrived, weights, gaps = follow(model, ways)
    names = [f"after {step}" for step in STEPS]
    rows = [
        ["merged weights in bfloat16: of what adapters add to them", *(f"{x:.0%}" for x in weights)],
        *([f"log-probabilities, `--lora.merge` {way}", *(f"{x:.0%}" for x in arrived[way])] for way in ways),
    ]
    text = (
        f"## Adapters: what arrives at the sampler\n\nAdapters of rank {RANK}, trained in float32 at a rate of "
        f"{ADAPTER_RATE:g} and given to a bfloat16 model with the same base. First line: the part of what they add to "
        "the weights that is left in weights rounded to bfloat16. Others: the change of the log-probabilities of "
        "stored replies, as a share of the float32 model's own change (least squares, so rounding at random counts "
        "neither way). Before, "
        "the base's product was rounded before the adapter's was added, in sampling with adapters apart and in "
        "scoring. Two bfloat16 parts hold 16 bits, but their products are rounded one by one.\n\n"
    )
    text += table(["share that arrives, gradient steps", *names], rows)

    def line(name: str, found: dict[str, float]) -> list[str]:
        return [name, *(f"{found[key]:.1e}" for key in ("mean", "p95", "max"))]

    rows = [line(f"bfloat16, {way}, after {step}", gaps[way][step]) for way in ways for step in (STEPS[0], STEPS[-1])]
    for name, source in (("after the warm start", str(model)), ("untrained", "tiny")):
        for dtype in ("float32", "bfloat16"):
            rows.append(line(f"{dtype}, no adapters, {name}", without_adapters(source, dtype)))
    text += (
        "\n\n## Sampler against scorer\n\nAbsolute differences per token of the log-probabilities noted while sampling "
        "and of the scorer's. The bounds of `--check.max-gap` (0.001 and 0.1, of the mean) are ours; they stand far "
        "above these.\n\n"
    )
    return text + table(["sampling", "mean", "p95", "max"], rows)


def write_speed(model: Path) -> str:
    """The section on what each way costs."""
    rows = []
    base = {dtype: seconds(model, dtype, MODEL) for dtype in ("float32", "bfloat16")}
    sizes = {NONE: (0, 0), MODEL: (4, 2), FLOAT32: (4, 4)}
    for way, (in_float32, in_bfloat16) in sizes.items():
        times = [f"{(base[d] if way == MODEL else seconds(model, d, way)) / base[d]:.2f}" for d in base]
        rows.append([way, f"{LINEAR_7B * in_float32 / 1e9:.1f}", f"{LINEAR_7B * in_bfloat16 / 1e9:.1f}", *times])
    header = [
        "`--lora.merge`", f"GB, {BIG} in float32", f"GB, {BIG} in bfloat16", "time, tiny in float32",
        "time, tiny in bfloat16",
    ]  # fmt: skip
    return (
        "## What sampling costs\n\nMemory of the merged copy, computed from the sizes of the adapted layers, and the "
        "time to sample 32 replies with the tiny model on a CPU, over that of `model`. A CPU makes float32 copies of "
        "the weights for each product of `none` in bfloat16; a GPU does not, and its time is not known yet. float32 "
        "products do not run on a GPU's 16-bit units. In float32, `model` and `float32` are the same computation: what "
        "their times differ by is the noise of the machine.\n\n" + table(header, rows)
    )


if __name__ == "__main__":
    main()

"""Speed of the tiny VL-DAC loop (rollout + reference + update) over the plain way of writing it, alternately in one
process.

    python tests/benchmarks/learner_speed.py --updates 3 --write

The plain way does what common VLM-RL loops do, on the same model, environments, batch sizes, epochs and losses: the
library's `generate()`; images prepared and encoded again in every pass; every pass left-padded with an attention mask;
logits of the whole sequence; the old log-probs recomputed by a forward pass after the rollout. Both are fed by the same
warm-started policy, and neither one's update is kept, so that they see replies of the same length throughout.
"""

from __future__ import annotations

import argparse
import copy
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from report import finish, parse_write, table

from baselines.engine.engine import Engine
from baselines.engine.policy import ModelPolicy
from baselines.engine.sampler import Replies
from baselines.learning.batch import Batch, log_probs
from baselines.learning.environments import Environments
from baselines.learning.warm_start import WarmConfig, warm_start
from baselines.learning.weights import AllWeights
from baselines.models.family import Family, Prompt
from baselines.models.load import load_family
from baselines.runs.distributed import ALONE
from baselines.vldac import VLDAC, Config


class PlainEngine:
    """The interface of `Engine`, written plainly with the library's forward pass and `generate()`."""

    def __init__(self, family: Family, max_new_tokens: int) -> None:
        self.family, self.max_new_tokens = family, max_new_tokens

    def _inputs(self, prompts: list[Prompt], replies: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        rows = [torch.cat([prompt.ids, reply]) for prompt, reply in zip(prompts, replies, strict=True)]
        width = max(len(row) for row in rows)
        ids = torch.full((len(rows), width), self.family.pad_id)
        types, mask = torch.zeros(ids.shape, dtype=torch.int32), torch.zeros(ids.shape, dtype=torch.int64)
        for i, (row, prompt) in enumerate(zip(rows, prompts, strict=True)):
            pad = width - len(row)
            ids[i, pad:], mask[i, pad:] = row, 1
            types[i, pad + prompt.image_slots] = 1
        images = [image for prompt in prompts for image in prompt.images]
        pixels = torch.cat([self.family.patchify(image) for image in images])
        grid = torch.tensor([image.grid for image in images])
        return {
            "input_ids": ids,
            "attention_mask": mask,
            "mm_token_type_ids": types,
            "pixel_values": pixels,
            "image_grid_thw": grid,
        }

    @torch.no_grad()
    def sample(
        self,
        prompts: list[Prompt],
        generator: torch.Generator,
        *,
        greedy: bool = False,
        share: tuple[int, int] | None = None,
    ) -> Replies:
        """Sample with `generate()`; log-probs are not kept, because the plain loop recomputes them."""
        n = len(prompts)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**31, (1,), generator=generator)))
            inputs = self._inputs(prompts, [torch.zeros(0, dtype=torch.int64)] * n)
            out = self.family.model.generate(
                **inputs,
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                repetition_penalty=1.0,
                max_new_tokens=self.max_new_tokens,
                suppress_tokens=list(self.family.suppressed),
            )[:, inputs["input_ids"].shape[1] :]
        ended = (out == self.family.turn_end).cumsum(-1)
        mask = (ended - (out == self.family.turn_end).long()) == 0
        texts = [self.family.decode(row[keep].tolist()) for row, keep in zip(out, mask, strict=True)]
        return Replies(out, mask, torch.zeros(out.shape), self.last_hidden(prompts), ended[:, -1] == 0, texts)

    @torch.no_grad()
    def last_hidden(self, prompts: list[Prompt]) -> torch.Tensor:
        """One more forward pass for the value head."""
        return self.family.model.model(
            **self._inputs(prompts, [torch.zeros(0, dtype=torch.int64)] * len(prompts))
        ).last_hidden_state[:, -1]

    def score_states(
        self, prompts: list[Prompt], ids: torch.Tensor, mask: torch.Tensor, *, train_vision: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Whole left-padded sequences, all logits; no states, which only an ablation reads."""
        replies = [row[keep] for row, keep in zip(ids, mask, strict=True)]
        logits = self.family.model(**self._inputs(prompts, replies)).logits.float()
        logits[..., list(self.family.suppressed)] = float("-inf")
        logp = torch.log_softmax(logits, -1)
        out = torch.zeros(ids.shape)
        for i, reply in enumerate(replies):
            out[i, : len(reply)] = logp[i, -len(reply) - 1 : -1].gather(-1, reply[:, None])[:, 0]
        return out, torch.zeros(0)


class Bench:
    """One way of running an update: what a learner uses of a run, with its own engines."""

    def __init__(self, name: str, config: Config, family: Family, max_new_tokens: int) -> None:
        self.name, self.config, self.world, self.state = name, config, ALONE, SimpleNamespace(env_steps=0)
        self.envs, self.order = Environments(config), torch.Generator().manual_seed(0)
        self.weights: Any = AllWeights(
            Engine(family, max_new_tokens=max_new_tokens), train_vision=False, keep_reference=True
        )
        if name == "plain":
            self.weights.scorer = self.weights.sampler = PlainEngine(family, max_new_tokens)
            self.weights.reference = PlainEngine(self.weights.reference.family, max_new_tokens)
        self.policy = ModelPolicy(self.weights.sampler, torch.Generator().manual_seed(0))
        self.learner = VLDAC(self)  # type: ignore[arg-type]
        self.before = copy.deepcopy(family.model.state_dict())

    def update(self) -> dict[str, float]:
        """One timed update; the weights are put back afterwards."""
        torch.use_deterministic_algorithms(self.name == "vlgym")
        times = [time.perf_counter()]
        cpu = time.process_time()
        if self.name != "plain":
            self.weights.sampler.forget()
        batch, stats = self.learner.collect()
        times.append(time.perf_counter())
        if self.name == "plain":
            self._recompute_old(batch)
        batch.ref = log_probs(self.weights.reference, batch, self.config)
        times.append(time.perf_counter())
        self.learner.learn(batch, self.config.value_warmup + 1)
        times.append(time.perf_counter())
        cpu = time.process_time() - cpu
        self.weights.family.model.load_state_dict(self.before)
        steps = len(batch.samples)
        return {
            "env_steps_per_s": steps / (times[-1] - times[0]),
            "env_steps_per_cpu_s": steps / cpu,
            "rollout_s": times[1] - times[0],
            "reference_s": times[2] - times[1],
            "update_s": times[3] - times[2],
            "reply_tokens": stats["rollout/reply_tokens"],
        }

    @torch.no_grad()
    def _recompute_old(self, batch: Batch) -> None:
        batch.old = log_probs(self.weights.sampler, batch, self.config)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--env", default="vlgym/NumberLine-v1")
    parser.add_argument("--model", default="tiny", help="tiny is warm-started first; a folder is taken as it is")
    args = parse_write(__doc__ or "", parser)
    torch.set_num_threads(args.threads)
    config = replace(Config(env=args.env), seed=0).resolve()
    family = load_family(args.model)
    engine = Engine(family, max_new_tokens=13)
    if args.model == "tiny":
        warm_start(engine, [args.env], WarmConfig(steps=100, target=1.0, check_every=100), seed=0)
    benches = [
        Bench("vlgym", config, family, engine.max_new_tokens),
        Bench("not deterministic", config, _copy(family), engine.max_new_tokens),
        Bench("plain", config, _copy(family), engine.max_new_tokens),
    ]
    rows: dict[str, list[dict[str, float]]] = {bench.name: [] for bench in benches}
    for round_number in range(args.updates + 1):
        for bench in benches:
            row = bench.update()
            if round_number:  # the first round warms up
                rows[bench.name].append(row)
    means = {name: {key: sum(r[key] for r in found) / len(found) for key in found[0]} for name, found in rows.items()}
    columns = ("env_steps_per_s", "env_steps_per_cpu_s", "rollout_s", "reference_s", "update_s", "reply_tokens")
    lines = [[name, *(f"{found[key]:.2f}" for key in columns)] for name, found in means.items()]
    ratios = {key: means["vlgym"][key] / means["plain"][key] for key in columns[:2]}
    free = means["not deterministic"]["env_steps_per_s"] / means["vlgym"]["env_steps_per_s"]
    phases = {key: means["plain"][key] / means["vlgym"][key] for key in ("rollout_s", "update_s")}
    body = (
        f"`{args.env}`, tiny model, {config.num_envs} environments x {config.rollout_steps} steps, "
        f"{config.epochs} epochs; "
        f"{args.updates} timed update(s) of each, alternately, {args.threads} thread(s). "
        "For the plain way, `reference_s` includes recomputing the old log-probs. It takes logits at every position "
        "and encodes each prompt whole for each reply, as common loops do; one that shared prompts would come "
        "closer.\n\n"
        f"Ratio of environment steps per second: **{ratios['env_steps_per_s']:.1f}** "
        f"(per CPU second {ratios['env_steps_per_cpu_s']:.1f}). The rollout alone is "
        f"**{phases['rollout_s']:.1f}** times as fast as with `generate()`, the update **{phases['update_s']:.1f}** "
        "times as fast as left-padded and masked; target 1.5 for each, aim 3. "
        f"Without `--deterministic` it makes **{free:.2f}** times as many steps per second.\n\n"
    )
    page = body + table(["way", *columns], lines)
    finish("learner", "Speed of the learner", page, ["vlgym", "torch", "transformers"], args.write)


def _copy(family: Family) -> Family:
    twin = copy.copy(family)
    twin.adopt(copy.deepcopy(family.model))
    return twin


if __name__ == "__main__":
    main()

"""Speed of the learner on one GPU: the architecture of Qwen2-VL-7B with random weights, in parts of some minutes.

    python tests/benchmarks/gpu.py --part decode

Speed depends on shapes, not on the weights' values: the weights are drawn on the device. Without CUDA the script
measures the tiny model, which shows that every part runs, and says nothing about a GPU.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import finish, parse, table
from torch import Tensor
from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

from baselines.engine.engine import Engine
from baselines.learning import setup
from baselines.learning.run import Run, peak_memory
from baselines.learning.warm_start import WarmConfig
from baselines.models import lora
from baselines.models.family import Family, Prompt
from baselines.models.load import load_family
from baselines.models.qwen import QwenVL
from baselines.models.tiny import EOS, IMAGE_PAD, PAD, VIDEO_PAD, VISION_END, VISION_START, build_tokenizer
from baselines.vldac import VLDAC, Config

ENV = "vlgym/NumberLine-v1"
SIDE = 336  # pixels
PROMPT = 300  # tokens, image included
RANK = 64


@dataclass(frozen=True)
class Scale:
    """Amount of measurement at a size."""

    batches: tuple[int, ...]
    new_tokens: int
    images: int
    micro: tuple[int, ...]
    num_envs: int
    rollout_steps: int
    updates: int
    copy_bytes: int
    product: int


SCALES = {
    "7b": Scale((16, 64, 128), 128, 64, (8, 16, 24), 64, 4, 3, 2**31, 8192),
    "tiny": Scale((16, 64), 32, 16, (8, 16, 24), 16, 2, 2, 2**26, 1024),
}


# ---- the model -------------------------------------------------------------------------------------------------------


def qwen2_vl_7b(device: torch.device) -> Qwen2VLForConditionalGeneration:
    """The published architecture (8.29 billion parameters, bfloat16) with random weights drawn on the device.

    Special tokens have the offline tokenizer's ids; the rest of the vocabulary is padding, which is never sampled.
    """
    ids: Any = build_tokenizer().convert_tokens_to_ids
    text: dict[str, Any] = {
        "vocab_size": 152064,
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "max_position_embeddings": 32768,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
        "bos_token_id": None,
        "eos_token_id": ids(EOS),
        "pad_token_id": ids(PAD),
    }
    vision = {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "num_heads": 16, "mlp_ratio": 4}
    config = Qwen2VLConfig(
        text_config=text, vision_config=vision, tie_word_embeddings=False,
        image_token_id=ids(IMAGE_PAD), video_token_id=ids(VIDEO_PAD),
        vision_start_token_id=ids(VISION_START), vision_end_token_id=ids(VISION_END),
    )  # fmt: skip
    with device:
        model = Qwen2VLForConditionalGeneration._from_config(config, dtype=torch.bfloat16)
    return model.eval().requires_grad_(False)


class Bench:
    """A size on a device, and what its speed is held against.

    Args:
        size: `7b` or `tiny`.
        device: where.
    """

    def __init__(self, size: str, device: torch.device) -> None:
        self.size, self.device, self.scale = size, device, SCALES[size]
        self.cuda = device.type == "cuda"
        if size == "7b":
            model = qwen2_vl_7b(device)
            self.family: Family = QwenVL(model, build_tokenizer(), image_tokens=(SIDE // 28) ** 2)
        else:
            self.family = load_family("tiny", device=str(device), dtype="bfloat16" if self.cuda else "float32")
            self.family.model.requires_grad_(False)
        self.itemsize = self.family.language_model.embed_tokens.weight.itemsize
        layers = self.family.language_model.layers
        self.linear = sum(p.numel() for p in layers.parameters() if p.dim() == 2)
        self.head = self.family.model.lm_head.weight.numel()

    def seconds(self, work: Callable[[], Any], repeat: int = 3) -> float:
        """Best time of one call, after one that warms up: of the clock on CUDA, of the processor on a shared CPU."""
        work()
        return min(self.once(work) for _ in range(repeat))

    def once(self, work: Callable[[], Any]) -> float:
        """Time of one call."""
        clock = time.perf_counter if self.cuda else time.process_time
        self._wait()
        start = clock()
        work()
        self._wait()
        return clock() - start

    def _wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize(self.device)

    def bandwidth(self) -> float:
        """Bytes per second that a copy reads and writes."""
        source = torch.zeros(self.scale.copy_bytes // 4, device=self.device)
        target = torch.empty_like(source)
        return 2 * self.scale.copy_bytes / self.seconds(lambda: target.copy_(source), 5)

    def peak(self) -> float:
        """Floating-point operations per second of a large matrix product in the model's precision."""
        n, dtype = self.scale.product, self.family.language_model.embed_tokens.weight.dtype
        a = torch.randn(n, n, device=self.device, generator=torch.Generator(self.device).manual_seed(0)).to(dtype)
        return 2 * n**3 / self.seconds(lambda: a @ a, 5)

    def memory(self) -> float:
        """Most memory so far, in GiB: of the device, or of the process."""
        return peak_memory(self.device) / 2**30

    def prompts(self, number: int) -> list[Prompt]:
        """Different pictures of `SIDE` pixels and different texts, each `PROMPT` tokens together: nothing to share."""
        rng = np.random.default_rng(0)

        def layout(name: int, picture: np.ndarray, words: int) -> Prompt:
            content = [{"type": "image", "image": picture}, {"type": "text", "text": f"{name}" + " move" * words}]
            return self.family.encode([{"role": "user", "content": content}])

        pictures = rng.integers(0, 256, (number, SIDE, SIDE, 3), dtype=np.uint8)
        return [layout(i, x, PROMPT - len(layout(i, x, 0))) for i, x in enumerate(pictures)]

    def adapted(self) -> tuple[Engine, Engine]:
        """An engine with adapters that change the output, and the sampler with their sum (as in training)."""
        lora.add_adapters(self.family, lora.LoraOptions(rank=RANK), seed=0)
        generator = torch.Generator(self.device).manual_seed(0)
        with torch.no_grad():
            for name, factor in lora.adapters(self.family).items():
                if name.endswith("/B"):
                    factor.weight.normal_(0.0, 1e-3, generator=generator)
        merged = lora.merged_copy(self.family)
        engine = Engine(self.family, max_new_tokens=self.scale.new_tokens)
        return engine, Engine(merged, max_new_tokens=self.scale.new_tokens, vision_of=engine)


# ---- parts -----------------------------------------------------------------------------------------------------------


@torch.no_grad()
def measure_decode(bench: Bench) -> dict[str, Any]:
    """Milliseconds per token, with the floor of reading weights, keys and values once."""
    bandwidth, limit = bench.bandwidth(), bench.scale.new_tokens
    engine, sampler = bench.adapted()
    adapters = sum(p.numel() for p in list(lora.adapters(bench.family).parameters()))
    decoder = bench.family.decoder
    per_token = 2 * len(decoder.layers) * decoder.kv_heads * decoder.head_dim * bench.itemsize
    rows = []
    for name, one in (("merged", sampler), ("adapters apart", engine)):
        weights = (bench.linear + bench.head) * bench.itemsize + (0 if one is sampler else 4 * adapters)
        for batch in bench.scale.batches:
            prompts = bench.prompts(batch)
            one.prefill_cached(prompts)
            uniforms = torch.rand(limit, batch, generator=torch.Generator().manual_seed(0)).to(bench.device)
            one.stop = torch.tensor([one.family.pad_id], device=bench.device)  # no reply ends early

            def decode(one: Engine = one, prompts: Any = prompts, uniforms: Tensor = uniforms) -> None:
                one.decode(prompts, uniforms, 1.0, None)

            first = bench.once(decode)
            seconds = bench.seconds(decode) / limit
            floor = (weights + batch * (PROMPT + limit / 2) * per_token) / bandwidth
            rows.append(
                {
                    "weights": name, "batch": batch, "ms": 1e3 * seconds, "floor_ms": 1e3 * floor,
                    "ratio": seconds / floor, "first_call_s": first,
                }
            )  # fmt: skip
    return {
        "rows": rows,
        "bandwidth_gb_s": bandwidth / 1e9,
        "prompt": PROMPT,
        "new": limit,
        "memory_gib": bench.memory(),
    }


@torch.no_grad()
def measure_prefill(bench: Bench) -> dict[str, Any]:
    """Keys and values of distinct prompts whose images are encoded already."""
    peak, engine = bench.peak(), Engine(bench.family, max_new_tokens=bench.scale.new_tokens)
    rows = []
    for batch in bench.scale.batches:
        prompts = bench.prompts(batch)
        engine.last_hidden(prompts)

        def prefill(prompts: list[Prompt] = prompts) -> None:
            engine._entries.clear()
            engine.last_hidden(prompts)

        seconds = bench.seconds(prefill)
        tokens = sum(map(len, prompts))
        rows.append(
            {
                "batch": batch, "tokens": tokens, "s": seconds, "tokens_per_s": tokens / seconds,
                "mfu": 2 * bench.linear * tokens / seconds / peak,
            }
        )  # fmt: skip
    return {"rows": rows, "peak_tflops": peak / 1e12, "memory_gib": bench.memory()}


@torch.no_grad()
def measure_vision(bench: Bench) -> dict[str, Any]:
    """Milliseconds per image, from pixels in host memory to features, and of that the preparation of patches."""
    images = [prompt.images[0] for prompt in bench.prompts(bench.scale.images)]
    whole = bench.seconds(lambda: bench.family.encode_images(images)) / len(images)
    patches = bench.seconds(lambda: [bench.family.patchify(image).to(bench.device) for image in images]) / len(images)
    row = {"images": len(images), "tokens": images[0].tokens, "ms": 1e3 * whole, "patches_ms": 1e3 * patches}
    return {"rows": [row], "memory_gib": bench.memory()}


def measure_update(bench: Bench) -> dict[str, Any]:
    """One forward and backward pass over replies by micro-batch, and how far the scorer is from the sampler."""
    peak, limit = bench.peak(), bench.scale.new_tokens
    engine, sampler = bench.adapted()
    sampler.stop = torch.tensor([bench.family.pad_id], device=bench.device)
    prompts = bench.prompts(max(bench.scale.micro))
    with torch.no_grad():
        out = sampler.sample(prompts, torch.Generator().manual_seed(0))
        gap = (engine.score(prompts, out.ids, out.mask) - out.logp).abs()[out.mask]
    parameters = list(lora.adapters(bench.family).parameters())
    rows = []
    for micro in bench.scale.micro:
        if bench.cuda:
            torch.cuda.reset_peak_memory_stats(bench.device)

        def update(micro: int = micro) -> None:
            engine.score(prompts[:micro], out.ids[:micro], out.mask[:micro]).sum().backward()
            for parameter in parameters:
                parameter.grad = None

        seconds = bench.seconds(update)
        tokens = micro * (PROMPT + limit)
        # Forward, and backward for the activations alone: the frozen weights take no gradient.
        operations = 2 * 2 * (bench.linear * tokens + bench.head * micro * limit)
        rows.append(
            {
                "micro": micro, "tokens_per_s": tokens / seconds, "mfu": operations / seconds / peak,
                "memory_gib": bench.memory(),
            }
        )  # fmt: skip
    difference = [{"mean": float(gap.mean()), "p95": float(gap.quantile(0.95)), "max": float(gap.max())}]
    return {"rows": rows, "difference": difference, "peak_tflops": peak / 1e12, "rank": RANK}


def measure_loop(bench: Bench) -> dict[str, Any]:
    """Environment steps per second of VL-DAC: rollout, reference, two epochs of updates, with adapters."""
    scale, family = bench.scale, bench.family
    with tempfile.TemporaryDirectory() as folder:
        config = Config(
            env=ENV, env_kwargs=(f"image_size=[{SIDE}, {SIDE}]",), model=bench.size, out=Path(folder) / "run",
            num_envs=scale.num_envs, rollout_steps=scale.rollout_steps, epochs=2, minibatch=scale.num_envs,
            micro_batch=16, max_new_tokens=scale.new_tokens, lora=lora.LoraOptions(rank=RANK), value_warmup=0,
            lr=1e-6, updates=100, eval_episodes=0, warm=WarmConfig(steps=0), device=str(bench.device),
            dtype="bfloat16" if bench.cuda else "float32",
        ).resolve()  # fmt: skip
        setup.load_family = lambda *args, **kwargs: family  # the model is made here, not loaded
        with Run(config) as run:
            for engine in run.weights.engines():  # replies ramble to the limit, the costliest case
                engine.stop = torch.tensor([family.pad_id], device=bench.device)
            learner = VLDAC(run)
            run.keep(learner.optimizers, learner.collector, {"value": learner.value, "steady": learner.steady})
            times = []
            for update in run.updates():
                if update.number > scale.updates + 1:
                    break
                times.append(bench.once(partial(learner.make, update)))
            logged = [json.loads(line) for line in (run.out / "log.jsonl").read_text().splitlines()]
    first, rows = times[0], [{"s": seconds} for seconds in times[1:]]
    steps = scale.num_envs * scale.rollout_steps
    for row, line in zip(rows, logged[1:], strict=True):
        row |= {"env_steps_per_s": steps / row["s"], "reply_tokens": line["rollout/reply_tokens"]}
        if bench.cuda:  # phases are timed by the clock, which means nothing on a shared CPU
            row |= {name.removeprefix("seconds/") + "_s": x for name, x in line.items() if name.startswith("seconds/")}
        row |= {name.split("_")[-1]: x for name, x in line.items() if name.startswith("rollout/logp_diff_")}
    return {
        "rows": rows, "first_update_s": first, "num_envs": scale.num_envs, "rollout_steps": scale.rollout_steps,
        "new": scale.new_tokens, "memory_gib": bench.memory(),
    }  # fmt: skip


# ---- the page --------------------------------------------------------------------------------------------------------

MEASURES = {
    "decode": measure_decode, "prefill": measure_prefill, "vision": measure_vision, "update": measure_update,
    "loop": measure_loop,
}  # fmt: skip


def show(value: Any) -> str:
    """A number in three digits, or a dash."""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return "-" if value is None else str(value)


def tables(part: str, found: dict[str, Any]) -> str:
    """A part's tables and single numbers."""
    text = [f"### {part}"]
    for rows in (each for each in found.values() if isinstance(each, list)):
        text.append(table(list(rows[0]), [[show(x) for x in row.values()] for row in rows]))
    single = [f"{name} {show(x)}" for name, x in found.items() if not isinstance(x, list)]
    return "\n\n".join([*text, ", ".join(single) + "."])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=tuple(MEASURES), action="append", help="what to measure; all if not given")
    parser.add_argument("--size", choices=tuple(SCALES), help="default 7b on CUDA, else tiny")
    args = parse(__doc__ or "", parser)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    size = args.size or ("7b" if device.type == "cuda" else "tiny")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    text = [
        f"{name}, model `{size}`: the architecture of Qwen2-VL-7B (`7b`, 8.29 billion parameters, bfloat16, random "
        f"weights) or the tiny model (`tiny`), adapters of rank {RANK}, pictures of {SIDE} pixels, prompts of {PROMPT} "
        "tokens. `floor_ms`: the time to read weights, keys and values of a step at the bandwidth of a copy; `mfu`: "
        "the share of the speed of a large matrix product; both measured in the same run."
    ]
    for part in args.part or MEASURES:
        text.append(tables(part, MEASURES[part](Bench(size, device))))
        print(text[-1], flush=True)  # a run may be cut off
    finish("gpu", "The learner on a GPU", "\n\n".join(text), ["vlgym", "torch", "transformers", "peft"])


if __name__ == "__main__":
    main()

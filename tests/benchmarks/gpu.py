"""Speed of the learner on one GPU: the architecture of Qwen2-VL-7B with random weights, in parts of some minutes.

    python tests/benchmarks/gpu.py --part decode
    python tests/benchmarks/gpu.py --minutes 12
    python tests/benchmarks/gpu.py --minutes 4 --size tiny --device cpu

Speed depends on shapes, not on the weights' values: the weights are drawn on the device. Without CUDA the script
measures a tiny model of the same architecture, which shows that every part runs, and says nothing about a GPU.

With `--minutes` the script goes through `PLAN` until they are spent, and appends each row to `--rows` as soon as it is
measured.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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
from baselines.learning.batch import Passes
from baselines.learning.run import Run
from baselines.learning.setup import probe
from baselines.learning.warm_start import WarmConfig
from baselines.models import lora
from baselines.models.family import Family, Prompt
from baselines.models.qwen import QwenVL
from baselines.models.tiny import EOS, IMAGE_PAD, PAD, VIDEO_PAD, VISION_END, VISION_START, build_tokenizer
from baselines.runs.distributed import peak_memory
from baselines.vldac import VLDAC, Config
from vlgym.files import append_whole

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
    "7b": Scale((16, 64, 128), 128, 64, (8, 16, 24), 128, 2, 3, 2**31, 8192),
    "2b": Scale((16, 64, 128), 128, 64, (8, 16, 24), 128, 2, 3, 2**31, 8192),
    "tiny": Scale((16, 64), 32, 16, (8, 16, 24), 16, 2, 2, 2**26, 1024),
}
SHAPES: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "7b": (
        {"vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
         "num_attention_heads": 28, "num_key_value_heads": 4, "tie_word_embeddings": False},
        {"depth": 32, "embed_dim": 1280, "num_heads": 16},
    ),
    "2b": (
        {"vocab_size": 151936, "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
         "num_attention_heads": 12, "num_key_value_heads": 2, "tie_word_embeddings": True},
        {"depth": 32, "embed_dim": 1280, "num_heads": 16},
    ),
    "tiny": (
        {"vocab_size": 1664, "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2,
         "num_attention_heads": 2, "num_key_value_heads": 1, "tie_word_embeddings": True},
        {"depth": 1, "embed_dim": 96, "num_heads": 3},
    ),
}  # fmt: skip
"""The text model and the vision tower of each size."""


# ---- the model -------------------------------------------------------------------------------------------------------


def qwen2_vl(size: str, device: torch.device) -> Qwen2VLForConditionalGeneration:
    """The published architecture (7B: 8.29 billion parameters), random weights drawn on the device; bfloat16 on CUDA.

    Special tokens have the offline tokenizer's ids; the rest of the vocabulary is padding, which is never sampled.
    """
    ids: Any = build_tokenizer().convert_tokens_to_ids
    shape, vision = SHAPES[size]
    text = shape | {
        "max_position_embeddings": 32768,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
        "bos_token_id": None, "eos_token_id": ids(EOS), "pad_token_id": ids(PAD),
    }  # fmt: skip
    config = Qwen2VLConfig(
        text_config=text, vision_config=vision | {"hidden_size": text["hidden_size"], "mlp_ratio": 4},
        tie_word_embeddings=text["tie_word_embeddings"],
        image_token_id=ids(IMAGE_PAD), video_token_id=ids(VIDEO_PAD),
        vision_start_token_id=ids(VISION_START), vision_end_token_id=ids(VISION_END),
    )  # fmt: skip
    with device:
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        model = Qwen2VLForConditionalGeneration._from_config(config, dtype=dtype)
    return model.eval().requires_grad_(False)


class Bench:
    """A size on a device, and what its speed is held against.

    Args:
        size: of `SCALES`.
        device: where.
    """

    def __init__(self, size: str, device: torch.device) -> None:
        self.size, self.device, self.scale = size, device, SCALES[size]
        self.cuda = device.type == "cuda"
        self.family: Family = QwenVL(qwen2_vl(size, device), build_tokenizer(), image_tokens=(SIDE // 28) ** 2)
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

    def adapted(self) -> Engine:
        """An engine with adapters that change the output."""
        lora.add_adapters(self.family, lora.LoraOptions(rank=RANK), seed=0)
        generator = torch.Generator(self.device).manual_seed(0)
        with torch.no_grad():
            for name, factor in lora.adapters(self.family).items():
                if name.endswith("/B"):
                    factor.weight.normal_(0.0, 1e-3, generator=generator)
        return Engine(self.family, max_new_tokens=self.scale.new_tokens)

    def merged(self, engine: Engine) -> Engine:
        """An engine with the sums of weights and adapters: a second copy of the weights."""
        return Engine(lora.merged_copy(self.family), max_new_tokens=self.scale.new_tokens, vision_of=engine)


# ---- parts -----------------------------------------------------------------------------------------------------------


@torch.no_grad()
def measure_decode(bench: Bench) -> dict[str, Any]:
    """Milliseconds per token, with the floor of reading weights, keys and values once."""
    bandwidth, limit = bench.bandwidth(), bench.scale.new_tokens
    engine = bench.adapted()
    sampler = bench.merged(engine)
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
    engine = bench.adapted()
    engine.stop = torch.tensor([bench.family.pad_id], device=bench.device)
    prompts = bench.prompts(max(bench.scale.micro))
    with torch.no_grad():
        out = engine.sample(prompts, torch.Generator().manual_seed(0))
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


def measure_loop(bench: Bench, updates: int | None = None) -> dict[str, Any]:
    """Environment steps per second of VL-DAC: rollout, reference, two epochs of updates, with adapters."""
    scale, family = bench.scale, bench.family
    with tempfile.TemporaryDirectory() as folder:
        config = Config(
            env=ENV, env_kwargs=(f"image_size=[{SIDE}, {SIDE}]",), model=f"random {bench.size}",
            out=Path(folder) / "run", num_envs=scale.num_envs, rollout_steps=scale.rollout_steps, epochs=2,
            minibatch=scale.num_envs, micro_batch=16, max_new_tokens=scale.new_tokens,
            lora=lora.LoraOptions(rank=RANK), value_warmup=0, lr=1e-6, updates=100, eval_episodes=0,
            warm=WarmConfig(steps=0), device=str(bench.device), dtype="bfloat16" if bench.cuda else "float32",
        ).resolve()  # fmt: skip
        setup.load_family = lambda *args, **kwargs: family  # the model is made here, not loaded
        with Run(config) as run:
            for engine in run.weights.engines():  # replies ramble to the limit, the costliest case
                engine.stop = torch.tensor([family.pad_id], device=bench.device)
            learner = VLDAC(run)
            run.keep(learner.optimizers, learner.collector, {"value": learner.value, "steady": learner.steady})
            times = []
            for update in run.updates():
                if update.number > (updates or scale.updates) + 1:
                    break
                times.append(bench.once(partial(learner.train, [update])))
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


# ---- one after another, as long as there is time ---------------------------------------------------------------------

Row = dict[str, Any]


@torch.no_grad()
def graphs(bench: Bench) -> Iterator[Row]:
    """Milliseconds per token with a CUDA graph and without, adapters apart and merged; how many greedy tokens of the
    graph are the loop's; the floor of reading the weights, and keys and values at half of the reply."""
    bandwidth, limit, engine = bench.bandwidth(), bench.scale.new_tokens, bench.adapted()
    decoder = bench.family.decoder
    per_token = 2 * len(decoder.layers) * decoder.kv_heads * decoder.head_dim * bench.itemsize
    for name in ("adapters apart", "merged"):
        one = engine if name != "merged" else bench.merged(engine)
        one.stop = torch.tensor([one.family.pad_id], device=bench.device)  # no reply ends early
        for batch in bench.scale.batches[::-1]:
            prompts, greedy = bench.prompts(batch), []
            draws = torch.rand(limit, batch, generator=torch.Generator().manual_seed(0)).to(bench.device)
            floor = (bench.linear + bench.head) * bench.itemsize + batch * (PROMPT + limit / 2) * per_token
            for static in (True, False):
                one.static = static
                greedy.append(one.decode(prompts, draws, 0.0, None).ids)
                seconds = bench.seconds(lambda one=one, p=prompts, d=draws: one.decode(p, d, 1.0, None), 1) / limit
                yield {
                    "weights": name, "batch": batch, "graph": bench.cuda and static and one.static,
                    "static": static, "ms": 1e3 * seconds, "floor_ms": 1e3 * floor / bandwidth,
                    "memory_gib": bench.memory(),
                }  # fmt: skip
            yield {"weights": name, "batch": batch, "same_tokens": float((greedy[0] == greedy[1]).float().mean())}


def probes(bench: Bench) -> Iterator[Row]:
    """Rows of a pass that fit beside the weights, with and without recomputing."""
    engine = bench.adapted()
    for recompute in (False, True):
        bench.family.set_recompute(recompute)
        if bench.cuda:
            torch.cuda.reset_peak_memory_stats(bench.device)
        found = probe(engine, bench.prompts(1)[0], list(lora.adapters(bench.family).parameters()), Passes(64), 64)
        yield {
            "recompute": recompute, "rows": found.rows, "tokens": found.tokens, "peak_gib": found.peak / 2**30,
            "s_a_row": found.seconds,
        }  # fmt: skip


def update(bench: Bench) -> Iterator[Row]:
    """An update that trains the policy, after one that warms up."""
    found = measure_loop(bench, updates=1)
    yield {**{name: x for name, x in found.items() if name != "rows"}, **found["rows"][0]}


def device_tests(device: torch.device, seconds: float) -> Iterator[Row]:
    """The learner's tests that follow `VLGYM_TEST_DEVICE`, in a process of their own."""
    tests = Path(__file__).resolve().parents[1] / "baselines"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "on_device", "-p", "no:cacheprovider", str(tests)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=max(1.0, seconds), check=False,
        env={**os.environ, "VLGYM_TEST_DEVICE": str(device)},
    )  # fmt: skip
    yield {"status": done.returncode, "end": done.stdout.strip().splitlines()[-1:]}


PLAN: tuple[tuple[Callable[[Bench], Iterator[Row]], str], ...] = (
    (graphs, "7b"), (probes, "2b"), (probes, "7b"), (update, "2b"), (update, "7b"),
)  # fmt: skip
"""What `--minutes` goes through, at which size; the tests follow."""


def go_through(minutes: float, rows: Path, device: torch.device, size: str | None) -> None:
    """Measure `PLAN` and append rows to a file until the minutes are spent; an error costs its own part alone."""
    end = time.monotonic() + 60 * minutes

    def note(part: str, row: Row) -> None:
        line = {"part": part, "device": str(device), "left_s": round(end - time.monotonic(), 1), **row}
        append_whole(rows, json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)

    def stop(*_: Any) -> None:
        raise TimeoutError("the minutes are spent")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)
    work: list[tuple[str, Callable[[], Iterator[Row]]]] = [
        (f"{measure.__name__} {size or at}", lambda m=measure, at=at: m(Bench(size or at, device)))  # type: ignore[misc]
        for measure, at in PLAN
    ]
    for part, measure in [*work, ("tests", lambda: device_tests(device, end - time.monotonic()))]:
        try:
            for row in measure():
                note(part, row)
        except (TimeoutError, subprocess.TimeoutExpired):
            note(part, {"stopped": "the minutes are spent"})
            break
        except Exception as error:  # an hour on a GPU is not lost to one part
            note(part, {"error": f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"})
        if device.type == "cuda":
            torch.cuda.empty_cache()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


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
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, help="go through the plan, as far as these minutes allow")
    parser.add_argument("--rows", type=Path, default=Path("gpu.jsonl"), help="where --minutes appends its rows")
    args = parse(__doc__ or "", parser)
    torch.manual_seed(0)
    device = torch.device(args.device)
    if args.minutes:
        return go_through(args.minutes, args.rows, device, args.size or ("tiny" if device.type == "cpu" else None))
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

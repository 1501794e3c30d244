"""Speed of the learner on one GPU: the architecture of Qwen2-VL-7B with random weights, in parts of
some minutes.

    python tests/benchmarks/gpu.py --minutes 12
    python tests/benchmarks/gpu.py --part update --size tiny --device cpu

Speed depends on shapes, not on the weights' values: the weights are drawn on the device. Without
CUDA the script measures a tiny model of the same architecture, which shows that every part runs,
and says nothing about a GPU. A row is appended to `--rows` as soon as it is measured.
"""

import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from report import describe_machine, make_parser
from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

from baselines.engine.engine import Engine
from baselines.learning import run as run_module
from baselines.learning.batch import Passes, probe
from baselines.learning.run import Run
from baselines.learning.warm_start import WarmConfig
from baselines.models import lora
from baselines.models.family import Family, Prompt
from baselines.models.qwen import QwenVL
from baselines.models.tiny import build_tokenizer, media_options
from baselines.runs.distributed import peak_memory
from baselines.vldac import VLDAC, Config
from vlgym.files import append_whole

ENV, RANK = "vlgym/NumberLine-v1", 64
SIDE = 336  # pixels
PROMPT = 300  # tokens, image included


class Scale(NamedTuple):
    """Amount of measurement at a size."""

    batches: tuple[int, ...]
    new_tokens: int
    num_envs: int
    copy_bytes: int


SCALES = {
    "7b": Scale((16, 64, 128), 128, 128, 2**31),
    "2b": Scale((16, 64, 128), 128, 128, 2**31),
    "tiny": Scale((16, 64), 32, 16, 2**26),
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


# ---- the model ---------------------------------------------------------------------------------


def qwen2_vl(size: str, device: torch.device) -> Qwen2VLForConditionalGeneration:
    """The published architecture (7B: 8.29 billion parameters), random weights drawn on the device.

    Special tokens have the offline tokenizer's ids; other rows of the vocabulary are never sampled.
    """
    (shape, vision), tokenizer = SHAPES[size], build_tokenizer()
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]}
    text = shape | {
        "max_position_embeddings": 32768, "rope_parameters": rope, "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id,
    }  # fmt: skip
    config = Qwen2VLConfig(
        text_config=text, vision_config=vision | {"hidden_size": text["hidden_size"], "mlp_ratio": 4},
        tie_word_embeddings=text["tie_word_embeddings"], **media_options(tokenizer),
    )  # fmt: skip
    with device:
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        model = Qwen2VLForConditionalGeneration._from_config(config, dtype=dtype)
    return model.eval().requires_grad_(False)


class Bench:
    """A size of `SCALES` on a device, and what its speed is held against."""

    def __init__(self, size: str, device: torch.device) -> None:
        self.size, self.device, self.scale = size, device, SCALES[size]
        self.cuda = device.type == "cuda"
        model = qwen2_vl(size, device)
        self.family: Family = QwenVL(model, build_tokenizer(), image_tokens=(SIDE // 28) ** 2)
        self.itemsize = self.family.language_model.embed_tokens.weight.itemsize
        layers = self.family.language_model.layers
        self.linear = sum(p.numel() for p in layers.parameters() if p.dim() == 2)
        self.head = self.family.model.lm_head.weight.numel()

    def seconds(self, work: Callable[[], Any], repeat: int = 3) -> float:
        """Best time of one call, after one that warms up."""
        work()
        return min(self.once(work) for _ in range(repeat))

    def once(self, work: Callable[[], Any]) -> float:
        """Time of one call: of the clock on CUDA, of the processor on a shared CPU."""
        clock = time.perf_counter if self.cuda else time.process_time
        wait = torch.cuda.synchronize if self.cuda else torch.cpu.synchronize
        wait()
        start = clock()
        work()
        wait()
        return clock() - start

    def bandwidth(self) -> float:
        """Bytes per second that a copy reads and writes."""
        source = torch.zeros(self.scale.copy_bytes // 4, device=self.device)
        target = torch.empty_like(source)
        return 2 * self.scale.copy_bytes / self.seconds(lambda: target.copy_(source), 5)

    def memory(self) -> float:
        """Most memory so far, in GiB: of the device, or of the process."""
        return peak_memory(self.device) / 2**30

    def prompts(self, number: int) -> list[Prompt]:
        """Different pictures of `SIDE` pixels and different texts, each `PROMPT` tokens together:
        nothing to share."""

        def layout(name: int, picture: np.ndarray, words: int) -> Prompt:
            text = {"type": "text", "text": f"{name}" + " move" * words}
            content = [{"type": "image", "image": picture}, text]
            return self.family.encode([{"role": "user", "content": content}])

        pictures = np.random.default_rng(0).integers(0, 256, (number, SIDE, SIDE, 3), dtype=np.uint8)
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


# ---- parts -------------------------------------------------------------------------------------

Row = dict[str, Any]


@torch.no_grad()
def graphs(bench: Bench) -> Iterator[Row]:
    """Milliseconds per token with a CUDA graph and without, adapters apart and merged; how many
    greedy tokens of the graph are the loop's; the floor of reading the weights, and keys and values
    at half of the reply."""
    bandwidth, limit, engine = bench.bandwidth(), bench.scale.new_tokens, bench.adapted()
    decoder = bench.family.decoder
    per_token = 2 * len(decoder.layers) * decoder.kv_heads * decoder.head_dim * bench.itemsize
    for name in ("adapters apart", "merged"):
        one = engine
        if name == "merged":  # a second copy of the weights
            one = Engine(lora.merged_copy(bench.family), max_new_tokens=limit, vision_of=engine)
        one.stop = torch.tensor([one.family.pad_id], device=bench.device)  # no reply ends early
        for batch in bench.scale.batches[::-1]:
            prompts, greedy = bench.prompts(batch), []
            generator = torch.Generator().manual_seed(0)
            draws = torch.rand(limit, batch, generator=generator).to(bench.device)
            floor = (bench.linear + bench.head) * bench.itemsize
            floor += batch * (PROMPT + limit / 2) * per_token
            for static in (True, False):
                one.static = static
                greedy.append(one.decode(prompts, draws, 0.0, None).ids)
                seconds = bench.seconds(lambda one=one, p=prompts, d=draws: one.decode(p, d, 1.0, None), 1) / limit
                yield {
                    "weights": name, "batch": batch, "graph": bench.cuda and static and one.static,
                    "static": static, "ms": 1e3 * seconds, "floor_ms": 1e3 * floor / bandwidth,
                    "memory_gib": bench.memory(),
                }  # fmt: skip
            same = float((greedy[0] == greedy[1]).float().mean())
            yield {"weights": name, "batch": batch, "same_tokens": same}


def probes(bench: Bench) -> Iterator[Row]:
    """Rows of a pass that fit beside the weights, with and without recomputing."""
    engine = bench.adapted()
    for recompute in (False, True):
        bench.family.set_recompute(recompute)
        if bench.cuda:
            torch.cuda.reset_peak_memory_stats(bench.device)
        factors = list(lora.adapters(bench.family).parameters())
        fit = probe(engine, bench.prompts(1)[0], factors, Passes(64), 64)
        yield {
            "recompute": recompute, "rows": fit.rows, "tokens": fit.tokens,
            "peak_gib": fit.peak / 2**30, "s_a_row": fit.seconds,
        }  # fmt: skip


def update(bench: Bench) -> Iterator[Row]:
    """An update of VL-DAC that trains the adapters, after one that warms up: rollout, reference,
    two epochs."""
    number, family = bench.scale.num_envs, bench.family
    with tempfile.TemporaryDirectory() as folder:
        config = Config(
            env=ENV, env_kwargs=(f"image_size=[{SIDE}, {SIDE}]",), model=f"random {bench.size}",
            out=Path(folder) / "run", num_envs=number, rollout_steps=2, epochs=2, minibatch=number,
            micro_batch=16, max_new_tokens=bench.scale.new_tokens, lora=lora.LoraOptions(rank=RANK),
            value_warmup=0, lr=1e-6, updates=100, eval_episodes=0, warm=WarmConfig(steps=0),
            device=str(bench.device), dtype="bfloat16" if bench.cuda else "float32",
        ).resolve()  # fmt: skip
        run_module.load_family = lambda *args, **kwargs: family  # the model is made here, not loaded
        with Run(config) as run:
            for engine in run.weights.engines:  # replies ramble to the limit, the costliest case
                engine.stop = torch.tensor([family.pad_id], device=bench.device)
            learner = VLDAC(run)
            run.keep(learner.optimizers, learner.collector, {"value": learner.value, "steady": learner.steady})
            times = list[float]()
            for each in run.updates():
                if len(times) == 2:  # whose rows are logged now; the end of the run is left out
                    break
                times.append(bench.once(partial(learner.train, [each])))
            line = json.loads((run.out / "log.jsonl").read_text().splitlines()[1])
    names = ("rollout/logp_diff_", "seconds/" if bench.cuda else "rollout/logp_diff_")
    yield {
        "s": times[1], "env_steps_per_s": 2 * number / times[1], "first_update_s": times[0],
        "num_envs": number,
        "reply_tokens": line["rollout/reply_tokens"], "memory_gib": bench.memory(),
        **{name: x for name, x in line.items() if name.startswith(names)},
    }  # fmt: skip


PARTS = {"graphs": (graphs, ["7b"]), "probes": (probes, ["2b", "7b"]), "update": (update, ["2b", "7b"])}
"""Name -> what measures it, and the sizes on CUDA."""


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--part", choices=tuple(PARTS), action="append", help="default: all")
    parser.add_argument("--size", choices=tuple(SCALES), help="default: tiny without CUDA")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rows", type=Path, default=Path("gpu.jsonl"), help="file that rows are appended to")
    args = parser.parse_args()
    torch.manual_seed(0)
    device, failed = torch.device(args.device), 0
    size = args.size or (None if device.type == "cuda" else "tiny")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{name}. {describe_machine(['vlgym', 'torch', 'transformers', 'peft'])}", flush=True)

    def note(row: Row) -> None:
        append_whole(args.rows, json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    def stop(*_: Any) -> None:
        raise TimeoutError("the minutes are spent")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 60 * args.minutes)
    for part, sizes in (PARTS[name] for name in args.part or PARTS):
        for at in [size] if size else sizes:
            where = {"part": part.__name__, "size": at, "device": str(device)}
            try:
                for row in part(Bench(at, device)):
                    note({**where, **row})
            except TimeoutError as error:
                note({**where, "stopped": str(error)})
                return failed
            except Exception as error:  # an hour on a GPU is not lost to one part
                failed = 1
                line = str(error).partition("\n")[0]
                note({**where, "error": f"{type(error).__name__}: {line}"})
            if device.type == "cuda":
                torch.cuda.empty_cache()
    return failed


if __name__ == "__main__":
    sys.exit(main())

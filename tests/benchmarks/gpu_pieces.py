"""Two of the pieces that `gpu.py` runs; without arguments nothing is done.

generate: greedy replies of every family's tiny model in float32 must be those of transformers' `generate`, which gets
the same prompts, and so many times quicker is ours with the architecture of Qwen2-VL-7B. memory: the most memory that
torch allocates in updates of that architecture, against the dry run that `--plan` prints. On a CPU (for the tests of
this script) the tiny model stands for the large one, and memory is that of living tensors.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu_speed import RANK, Bench
from report import parse_write

from baselines.engine.dry_run import peak_bytes, update_bytes
from baselines.engine.engine import Engine
from baselines.models import lora
from baselines.models.family import Family, Prompt
from baselines.models.gemma import Gemma3
from baselines.models.load import FAMILIES, load_family
from baselines.models.tiny import TinyConfig, build_tiny

NEW = 32  # tokens of a reply
ROWS = (4, 16)


def library_inputs(family: Family, prompt: Prompt) -> dict[str, Any]:
    """A prompt with its picture as the library's model takes it."""
    device = family.device
    types = torch.zeros(1, len(prompt), dtype=torch.int64, device=device)
    types[0, prompt.image_slots.to(device)] = 1
    inputs: dict[str, Any] = {"input_ids": prompt.ids[None].to(device), "attention_mask": torch.ones_like(types)}
    dtype = family.language_model.embed_tokens.weight.dtype
    if isinstance(family, Gemma3):
        pixels = torch.stack([family.normalise(image) for image in prompt.images])
        return inputs | {"token_type_ids": types, "pixel_values": pixels.to(dtype)}
    grid = torch.tensor([image.grid for image in prompt.images], device=device)
    patches = torch.cat([family.patchify(image) for image in prompt.images])
    return inputs | {"mm_token_type_ids": types, "pixel_values": patches.to(dtype), "image_grid_thw": grid}


def replies_of_library(family: Family, prompts: Sequence[Prompt], new: int) -> list[list[int]]:
    """Greedy replies by the library's `generate`, prompt by prompt, special tokens suppressed as ours are."""
    found = []
    for prompt in prompts:
        family.model.model.rope_deltas = None  # the library remembers those of its last call
        out = family.model.generate(
            **library_inputs(family, prompt), do_sample=False, max_new_tokens=new, repetition_penalty=1.0,
            suppress_tokens=list(family.suppressed), pad_token_id=family.pad_id, eos_token_id=list(family.stop_ids),
        )  # fmt: skip
        found.append(out[0, len(prompt) :].tolist())
    return found


def seconds(work: Callable[[], Any], device: torch.device) -> float:
    """Time of the second call."""
    for _ in range(2):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return time.perf_counter() - start


@torch.no_grad()
def compare_with_generate(device: torch.device) -> dict[str, Any]:
    """Greedy replies of ours and of the library's, and the time of each; the replies of every family must be equal."""
    found: dict[str, Any] = {}
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (4, 112, 112, 3), dtype=np.uint8)
    for name, (_, kind) in FAMILIES.items():
        net, words = build_tiny(TinyConfig(), family=name)
        family = kind(net.to(device), words)
        text = {"type": "text", "text": "Reach the target, then end your reply with <action>ACTION</action>."}
        chats = [[{"role": "user", "content": [{"type": "image", "image": x}, text]}] for x in pictures]
        prompts = [family.encode(chat) for chat in chats]
        out = Engine(family, max_new_tokens=NEW).sample(prompts, greedy=True)
        ours = [row[mask].tolist() for row, mask in zip(out.ids, out.mask, strict=True)]
        theirs = replies_of_library(family, prompts, NEW)
        same = sum(a == b for a, b in zip(ours, theirs, strict=True))
        found[f"{name}: equal replies of {len(prompts)}, float32"] = same
        if same < len(prompts):
            found["differs"] = f"{name}: {ours} against {theirs}"
    bench = Bench("7b" if device.type == "cuda" else "tiny", device)
    prompts = bench.prompts(1)
    engine = Engine(bench.family, max_new_tokens=NEW)
    engine.stop = torch.tensor([bench.family.pad_id], device=device)  # replies of full length
    bench.family.stop_ids = ()

    def ours_once() -> None:
        engine.forget()
        engine.sample(prompts, greedy=True)

    mine = seconds(ours_once, device)
    library = seconds(lambda: replies_of_library(bench.family, prompts, NEW), device)
    return found | {
        f"{bench.size}: seconds of one reply of {NEW} tokens, ours": mine,
        f"{bench.size}: seconds of one reply of {NEW} tokens, generate": library,
        "times quicker": library / mine,
    }


def measure_memory(device: torch.device) -> dict[str, Any]:
    """Most memory of a forward and backward pass beside what was there, against the dry run of the same pass."""
    found: dict[str, Any] = {}
    for recompute in (False, True):
        bench = Bench("7b" if device.type == "cuda" else "tiny", device)
        shapes = load_shapes(bench)
        for family in (bench.family, shapes):
            family.model.requires_grad_(False)
            lora.add_adapters(family, lora.LoraOptions(rank=RANK), seed=0)
            if recompute:
                family.recompute_activations()
        engine, plan = Engine(bench.family, max_new_tokens=NEW), Engine(shapes, max_new_tokens=NEW)
        prompts = bench.prompts(max(ROWS))
        engine.features([image for prompt in prompts for image in prompt.images], train=False)
        for rows in ROWS:
            ids = torch.full((rows, NEW), 40, device=device)

            taken = peak_on(device, partial(update, engine, prompts[:rows], ids))
            planned = update_bytes(plan, rows, len(prompts[0]), NEW, flat=True)
            how = "recomputed" if recompute else "kept"
            name = f"{bench.size}, {rows} x {len(prompts[0]) + NEW} tokens, activations {how}"
            found |= {f"{name}: GiB taken": taken / 2**30, f"{name}: planned / taken": planned / taken}
        del bench, engine
    return found


def update(engine: Engine, prompts: Sequence[Prompt], ids: torch.Tensor) -> None:
    """A forward and backward pass whose gradients are dropped."""
    engine.score_flat(prompts, ids, ids > 0).sum().backward()
    engine.family.model.zero_grad(set_to_none=True)


def load_shapes(bench: Bench) -> Family:
    """The same family on the meta device."""
    if bench.size == "tiny":
        family = load_family("tiny", dtype="bfloat16" if bench.cuda else "float32")
        family.model.to("meta")
        return family
    from gpu_speed import qwen2_vl_7b

    return type(bench.family)(qwen2_vl_7b(torch.device("meta")), bench.family.tokenizer)


def peak_on(device: torch.device, work: Callable[[], Any]) -> int:
    """Most bytes of a second call beside what was there before."""
    work()
    if device.type != "cuda":
        return peak_bytes(work)
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    work()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


MEASURES = {"generate": compare_with_generate, "memory": measure_memory}


def main() -> int:
    """Command line; returns 1 where replies that must be equal are not."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("piece", nargs="?", choices=tuple(MEASURES))
    parser.add_argument("results", nargs="?", type=Path, help="file that the numbers are written to")
    args = parse_write(__doc__ or "", parser)
    if args.piece is None:
        return 0
    torch.manual_seed(0)
    found = MEASURES[args.piece](torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    print(json.dumps(found, indent=1))
    if args.results:
        args.results.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int("differs" in found)


if __name__ == "__main__":
    raise SystemExit(main())

"""What `--plan` says against what real passes take, and the papers' presets before and after they said how much to take
at once.

    python tests/benchmarks/activation_memory.py --write

Everything runs on a CPU: tiny models of every family whole, and two layers of Qwen2-VL-7B in their real size. How the
figures compare with a GPU's allocator is a piece of `gpu.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from gpu_speed import qwen2_vl_7b
from report import finish, parse_write, table
from transformers import Qwen2VLForConditionalGeneration

from baselines import loop, vldac
from baselines.engine.dry_run import peak_bytes, update_bytes
from baselines.engine.engine import Engine
from baselines.learning import presets
from baselines.learning.fit import another
from baselines.learning.memory import GIB
from baselines.learning.plan import make_plan
from baselines.models import lora
from baselines.models.family import Family, Prompt
from baselines.models.load import FAMILIES
from baselines.models.qwen import QwenVL
from baselines.models.tiny import TinyConfig, build_tiny
from baselines.models.tokenizer import build_tokenizer

ROWS, REPLY = 5, 20
CARD = 80e9  # bytes
ENVS = {
    "paper-miniworld": "vlgym/OneRoom-v0", "paper-loop": "vlgym/OneRoom-v0", "paper-alfworld": "vlgym/ALFWorld-v0",
    "paper-webshop": "vlgym/WebShop-v0",
}  # fmt: skip


def prepare(family: Family, rank: int, *, recompute: bool) -> Engine:
    """An engine whose vision tower is frozen."""
    for parameter in family.vision_parameters():
        parameter.requires_grad_(False)
    if rank:
        lora.add_adapters(family, lora.LoraOptions(rank=rank), seed=0)
    if recompute:
        family.recompute_activations()
    return Engine(family, max_new_tokens=1)


def ask(family: Family, number: int, words: int) -> Prompt:
    """A prompt that shares nothing with those of other numbers."""
    picture = np.random.default_rng(number).integers(0, 256, (112, 112, 3), dtype=np.uint8)
    content = [{"type": "text", "text": " move" * words}, {"type": "image", "image": picture}]
    return another(family.encode([{"role": "user", "content": content}]), number)


def compare(name: str, kind: torch.dtype, rank: int, *, recompute: bool) -> list[str]:
    """One row of the first table: bytes of living tensors in a real update, and the dry run's share of them."""
    cells = [name, str(kind).removeprefix("torch."), f"rank {rank}" if rank else "all", "yes" if recompute else "no"]
    engines = []
    for device in ("cpu", "meta"):
        net, words = build_tiny(TinyConfig(layers=3), family=name)
        engines.append(prepare(FAMILIES[name][1](net.to(device, kind), words), rank, recompute=recompute))
    real, shapes = engines
    prompts = [ask(real.family, i, 90 if i else 80) for i in range(ROWS)]
    ids = torch.full((ROWS, REPLY), 40)
    real.features([image for prompt in prompts for image in prompt.images], train=False)
    for flat, score in ((True, real.score_flat), (False, real.score)):
        taken = peak_bytes(lambda score=score: score(prompts, ids, ids > 0).sum().backward())
        real.family.model.zero_grad(set_to_none=True)
        planned = update_bytes(shapes, ROWS, max(map(len, prompts)), REPLY, flat=flat)
        cells += [f"{taken / 1e6:.1f}", f"{planned / taken:.3f}"]
    return cells


def saved_bytes(work: Callable[[], Any], weights: set[int]) -> int:
    """Bytes of distinct tensors that autograd keeps for the backward pass, weights aside."""
    kept: dict[int, Any] = {}

    def note(x: torch.Tensor) -> torch.Tensor:
        kept[x.untyped_storage()._cdata] = x.untyped_storage()
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        work()
    return sum(storage.nbytes() for at, storage in kept.items() if at not in weights)


def measure_7b(rank: int) -> tuple[float, float]:
    """MB per token and 28 layers of Qwen2-VL-7B: kept in a real forward pass in bfloat16 of its layers, taken as the
    difference of two layers and one; and by the dry run of all layers of an update."""
    whole = qwen2_vl_7b(torch.device("meta"))
    kept = []
    for layers in (1, 2):
        config = qwen2_vl_7b(torch.device("meta")).config
        config.text_config.num_hidden_layers = layers
        config.text_config.layer_types = config.text_config.layer_types[:layers]
        config.text_config.vocab_size, config.vision_config.depth = 4096, 1
        net: Any = Qwen2VLForConditionalGeneration._from_config(config, dtype=torch.bfloat16)
        engine = prepare(QwenVL(net.eval(), build_tokenizer()), rank, recompute=False)
        prompt = engine.family.encode([{"role": "user", "content": [{"type": "text", "text": " move" * 100}]}])
        ids = torch.full((1, REPLY), 40)
        weights = {p.untyped_storage()._cdata for p in net.parameters()}
        taken = saved_bytes(
            lambda engine=engine, prompt=prompt, ids=ids: engine.score_flat([prompt], ids, ids > 0), weights
        )
        kept.append(taken / (len(prompt) + REPLY))
    shapes = prepare(QwenVL(whole, build_tokenizer()), rank, recompute=False)
    one, three = (update_bytes(shapes, rows, 300, 128, flat=True) for rows in (1, 3))
    return 28 * (kept[1] - kept[0]) / 1e6, (three - one) / (2 * 428) / 1e6


def plan_presets() -> list[list[str]]:
    """Updates of the papers' presets on Qwen2-VL-7B and an 80 GB card, in GiB."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        qwen2_vl_7b(torch.device("meta")).config.save_pretrained(folder)
        for name in presets.PRESETS:
            if not name.startswith("paper-"):
                continue
            learner = loop if name == "paper-loop" else vldac
            config = replace(
                presets.apply(learner.Config(), name), env=ENVS.get(name, "vlgym/EZPoints-v0"), model=folder,
                device="cuda", plan=True, plan_gib=CARD / GIB,
            )  # fmt: skip
            cells = [name, str(config.env)]
            for way in (replace(config, micro_tokens=None), config):
                plan = make_plan(way.resolve())[0]
                taken = f"{plan.rows} x {plan.prompt + plan.reply} tokens: {plan.total('update') / GIB:.1f}"
                cells.append(f"{taken}, {'fits' if plan.fits else 'does not fit'}")
            rows.append([*cells, f"{plan.total('rollout') / GIB:.1f}"])
    return rows


def main() -> None:
    """Command line."""
    args = parse_write(__doc__ or "")
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    rows = [
        compare(name, kind, rank, recompute=recompute)
        for name in FAMILIES
        for kind, rank in ((torch.float32, 0), (torch.bfloat16, 8))
        for recompute in (False, True)
    ]
    header = ("model", "weights", "trained", "recomputed", "flat, MB", "dry run / MB", "shared, MB", "dry run / MB")
    first = table(header, rows)
    ranks = [(rank, *measure_7b(rank)) for rank in (16, 128)]
    second = table(
        ("adapters", "kept by autograd, MB a token", "living in an update (dry run), MB a token"),
        [(f"rank {rank}", f"{kept:.2f}", f"{dry:.2f}") for rank, kept, dry in ranks],
    )
    third = table(
        ("preset", "environment", "update before (micro-batch 64), GiB", "update now, GiB", "rollout, GiB"),
        plan_presets(),
    )
    body = "\n\n".join(
        [
            "What an update takes beside weights and optimizer: the most bytes of tensors that live at once in a real "
            f"forward and backward pass over {ROWS} replies of {REPLY} tokens to prompts that share nothing (tiny "
            "models of three layers), and the dry run on the meta device that `--plan` prints, as a share of it. Flat "
            "is the library's forward pass (the default on CUDA), shared is ours with prompts computed once.",
            first,
            "Activations per token of Qwen2-VL-7B in bfloat16 with adapters. Kept: bytes of distinct tensors that "
            "autograd saves in a real forward pass of two layers less those of one, times 28 layers. Dry run: what a "
            "further row of 428 tokens adds to an update, its share of the gradients' and logits' buffers included.",
            second,
            f"The presets on that model and a card of {CARD / 1e9:.0f} GB, of which a tenth is left free: what an "
            "update took as they were before (`--micro-batch 64`), and takes now (`--micro-tokens`, nothing "
            "recomputed). The longest prompts are found by playing; text is counted with the tiny models' tokenizer, "
            "which makes several times as many tokens of it as a published one: so the rows of ALFWorld and WebShop, "
            "whose prompts are mostly text, are upper bounds.",
            third,
            "No GPU has been measured for this page.",
        ]
    )
    finish("activation_memory", "Memory of an update", body, ["vlgym", "torch", "transformers", "peft"], args.write)


if __name__ == "__main__":
    main()

"""What a plan counts, item by item: against the real tensors, or against a sum by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from samples import messages, picture

from baselines import vldac
from baselines.engine.engine import Engine
from baselines.learning import memory, plan
from baselines.learning.memory import GIB, Item, MemoryPlan, largest_rows, plan_memory, prepare, standing_items
from baselines.models import lora
from baselines.models.load import load_family
from baselines.models.lora import LoraOptions
from baselines.models.shapes import shape_family
from vlgym.errors import UserError

CONFIG = vldac.Config(model="tiny", dtype="float32", num_envs=5, rollout_steps=3)
NEW = 12  # tokens of the longest reply


def ask(family):
    return family.encode(messages(picture(1), "Which way?"))


def counted(family, config, prompt) -> dict[str, tuple[int, str]]:
    """Name -> (bytes, phase) of what stands beside the passes."""
    return {item.name: (item.size, item.phase) for item in standing_items(family, config, prompt, NEW)}


def linear_weights(family) -> int:
    return sum(layer.base_layer.weight.numel() for _, layer in lora.adapted_layers(family))


# ---- caches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tiny", "qwen3_vl"])
def test_keys_values_and_features_take_what_the_engine_keeps_of_a_prompt(name, model_folder):
    family = load_family(name if name == "tiny" else str(model_folder(name)), image_tokens=4)
    engine, prompt = Engine(family, max_new_tokens=NEW), ask(family)
    (features,) = engine.features(prompt.images, train=False)
    ((keys, values, _),) = engine.prefill_cached([prompt])
    found = counted(family, CONFIG, prompt)
    token = (keys.nbytes + values.nbytes) // len(prompt)
    assert found["keys and values of 15 prompts"] == (15 * len(prompt) * token, "rollout")  # 3 steps of 5 environments
    replies = 5 * (len(prompt) + NEW) * token
    assert found["keys and values of 5 replies while they are sampled"] == (replies, "rollout")
    # Those of the steps, of what is seen after the last, and of an evaluation's first turns.
    assert found["vision features of 25 images"] == (25 * features.nbytes, "always")


def test_on_a_gpu_the_buffers_of_replies_are_whole_buckets_and_blocks_that_stay():
    family = shape_family("tiny")[0]
    prompt = ask(family)
    short = prompt.ids[:50]
    few, many = (
        counted(family, replace(CONFIG, device="cuda", num_envs=envs), replace(prompt, ids=short)) for envs in (5, 17)
    )
    token = 4 * 2 * 4 * 2 * 32  # bytes of a number; keys and values, layers, heads of them, their width
    assert few["keys and values of 16 replies while they are sampled"] == (16 * 64 * token, "always")
    assert many["keys and values of 32 replies while they are sampled"] == (32 * 64 * token, "always")


# ---- weights, optimizer, gradients -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("optimizer", "each"), [("adamw", 8), ("adamw8bit", 2)])
@pytest.mark.parametrize("rank", [0, 2])
def test_moments_and_gradients_are_those_of_the_trained_weights(monkeypatch, optimizer, each, rank):
    monkeypatch.setattr(memory, "update_bytes", lambda *args, **options: 10**9)
    config = replace(CONFIG, optimizer=optimizer, lora=LoraOptions(rank=rank))
    engine = prepare(shape_family("tiny")[0], config)
    trained = sum(p.numel() for p in engine.family.model.parameters() if p.requires_grad)
    found = plan_memory(config, engine, ask(engine.family), new_tokens=NEW)
    sizes = {item.name.split(",")[0]: item.size for item in found.items}
    assert sizes["optimizer"] == each * trained
    assert sizes["gradients in float32"] == 4 * trained
    logits = sizes["logits of the update"]
    assert logits == 3 * 4 * found.rows * NEW * engine.suppress.shape[0]
    whole = 10**9 - 4 * trained - logits  # the dry run counts gradients and logits, too
    assert sizes[f"activations of {found.rows} x {found.prompt + NEW} tokens"] == whole


@pytest.mark.parametrize(("merge", "each"), [("none", 0), ("float32", 4), ("model", 2)])
def test_the_merged_copy_is_of_the_type_that_it_is_merged_in(merge, each):
    config = replace(CONFIG, dtype="bfloat16", lora=LoraOptions(rank=2, merge=merge))
    family = prepare(shape_family("tiny", dtype="bfloat16")[0], config).family
    found = counted(family, config, ask(family))
    name = "copy with adapters merged, for sampling"
    assert found.get(name, (0, ""))[0] == each * linear_weights(family)


def test_packed_weights_take_half_a_byte_and_their_constants():
    """NF4: 4 bits a weight, a byte for 64 of them, and 4 bytes for 256 of those."""
    config = replace(CONFIG, dtype="bfloat16", lora=LoraOptions(rank=2))
    family = prepare(shape_family("tiny", dtype="bfloat16")[0], config).family
    prompt = ask(family)
    plain, packed = (
        next(size for name, (size, _) in counted(family, each, prompt).items() if name.startswith("language model"))
        for each in (config, replace(config, quantize="nf4"))
    )
    number = linear_weights(family)
    assert plain - packed == pytest.approx(number * (2 - (0.5 + 1 / 64 + 4 / (64 * 256))), rel=1e-3)


def test_a_vision_tower_that_is_trained_is_trained_in_the_plan_too():
    for train_vision in (False, True):
        config = replace(CONFIG, train_vision=train_vision)
        engine = prepare(shape_family("tiny")[0], config)
        assert {p.requires_grad for p in engine.family.vision_parameters()} == {train_vision}
        found = plan_memory(config, engine, ask(engine.family), new_tokens=NEW)
        assert any("vision tower (estimate)" in item.name for item in found.items) == train_vision


def test_recomputing_is_planned_with():
    assert prepare(shape_family("tiny")[0], replace(CONFIG, recompute=True)).family.decoder.recompute
    assert not prepare(shape_family("tiny")[0], CONFIG).family.decoder.recompute


# ---- whether it fits, and what to do ---------------------------------------------------------------------------------


def plan_of(always: int, rollout: int, update: int, device: int = 1000, rows: int = 9) -> MemoryPlan:
    items = Item("a", always), Item("r", rollout, "rollout"), Item("u", update, "update")
    return MemoryPlan(items, device, rows, 30, 10)


def test_a_plan_fits_where_its_larger_phase_fits_into_nine_tenths():
    assert plan_of(500, 400, 300).fits
    assert plan_of(500, 300, 400).fits
    assert not plan_of(500, 401, 300).fits
    assert not plan_of(500, 300, 401).fits


@pytest.mark.parametrize(("room", "rows"), [(99, 0), (100, 1), (149, 1), (150, 2), (399, 6), (400, 7), (9999, 9)])
def test_the_largest_pass_takes_all_the_room_that_is_left(monkeypatch, room, rows):
    """One row takes 100 bytes, each further one 50; the plan has 9."""
    monkeypatch.setattr(memory, "update_bytes", lambda engine, count, prompt, reply, flat: 50 + 50 * count)
    found = replace(plan_of(200, 10**6, 10**6), device_bytes=math.ceil((200 + room) / memory.SHARE))
    assert largest_rows(found, None, CONFIG) == rows


def test_the_largest_pass_has_room_for_the_vision_tower_that_is_trained(monkeypatch):
    """One row takes 100 bytes, each further one 50, and each row 25 of the tower."""
    monkeypatch.setattr(memory, "update_bytes", lambda engine, count, prompt, reply, flat: 50 + 50 * count)
    config = replace(CONFIG, train_vision=True)
    engine = prepare(shape_family("tiny")[0], config)
    tower = next(
        item
        for item in plan_memory(config, engine, ask(engine.family), new_tokens=NEW).items
        if "tower (e" in item.name
    )
    items = Item("a", 200), replace(tower, size=9 * 25)
    for room, rows in ((124, 0), (125, 1), (199, 1), (200, 2)):
        found = MemoryPlan(items, math.ceil((200 + room) / memory.SHARE), 9, 30, 10)
        assert largest_rows(found, None, config) == rows


@pytest.mark.parametrize(
    ("found", "changes", "rows", "recomputed", "advice"),
    [
        ((500, 0, 500), {}, 3, 0, "--micro-batch 3"),
        ((500, 0, 500), {"micro_tokens": 400}, 3, 0, "--micro-tokens 120"),
        ((500, 0, 500), {}, 3, 7, "--micro-batch 3, or --recompute --micro-batch 7"),
        ((500, 0, 500), {}, 3, 3, "--micro-batch 3"),
        ((500, 0, 500), {}, 0, 7, "--recompute --micro-batch 7"),
        ((500, 0, 500), {}, 0, 0, "--lora.rank 16, or a smaller model"),
        ((500, 0, 500), {"lora": LoraOptions(rank=2)}, 0, 0, "a smaller model"),
        ((500, 500, 0), {}, 3, 7, "smaller --num-envs, --history-images or --max-new-tokens"),
        ((500, 401, 401), {}, 3, 0, "--micro-batch 3, or smaller --num-envs, --history-images or --max-new-tokens"),
    ],
)
def test_the_advice_is_for_the_phase_that_does_not_fit(found, changes, rows, recomputed, advice):
    assert plan._advise(plan_of(*found), replace(CONFIG, **changes), rows, recomputed) == f"to fit: {advice}"


def test_the_device_that_is_planned_for_is_the_one_named_or_this_machine(monkeypatch):
    assert plan._device(replace(CONFIG, plan_gib=1.5)) == 1.5 * GIB
    assert plan._device(replace(CONFIG, device="cuda", plan_gib=80.0)) == 80 * GIB
    monkeypatch.setattr(plan, "device_bytes", lambda device: f"all of {device}")
    assert plan._device(replace(CONFIG, device="cpu")) == "all of cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="no CUDA device here; say how large it is: --plan-gib"):
        plan._device(replace(CONFIG, device="cuda"))

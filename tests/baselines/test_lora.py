"""Adapters, the views of the model without them, and plain checkpoints."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from samples import messages, picture
from torch import nn
from torch.overrides import TorchFunctionMode

from baselines.engine.engine import Engine
from baselines.models import lora
from baselines.models.load import FAMILIES, load_family
from baselines.models.lora import (
    LoraOptions,
    adapters,
    add_adapters,
    export_merged,
    merged_copy,
    reference,
    refresh,
    trainable_parameters,
)
from baselines.runs.checkpoint import load_module, module_tensors
from vlgym.errors import UserError

MODELS = ["tiny", *(name for name in FAMILIES if name != "qwen2_vl")]  # tiny is a Qwen2-VL


@pytest.fixture(params=MODELS)
def source(request, model_folder):
    """What `load_family` takes for a tiny model of each family."""
    return request.param if request.param == "tiny" else str(model_folder(request.param))


@pytest.fixture
def family(source):
    """A fresh model of each family, before it has adapters."""
    return load_family(source)


def randomise(family, seed: int = 1) -> None:
    """Give the adapters weights as if they had learnt something."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in trainable_parameters(family):
            parameter.normal_(0.0, 0.05, generator=generator)


def replies(family, prompts) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.tensor([family.encode_reply("target 3 current 7")] * len(prompts))
    return ids, torch.ones_like(ids, dtype=torch.bool)


@torch.no_grad()
def scores(family, prompts) -> torch.Tensor:
    return Engine(family, max_new_tokens=10).score(prompts, *replies(family, prompts))


def linears(family) -> dict[str, nn.Linear]:
    return {n: m for n, m in family.language_model.named_modules() if type(m) is nn.Linear}


def sampled(engine, prompts):
    return engine.sample(prompts, torch.Generator().manual_seed(0))


# ---- adding adapters -------------------------------------------------------------------------------------------------


def test_adapters_begin_as_the_identity(family, prompts):
    before = scores(family, prompts)
    add_adapters(family, LoraOptions(rank=4), seed=0)
    assert torch.equal(scores(family, prompts), before)


def test_every_linear_layer_of_the_language_model_has_an_adapter_and_nothing_else_has(family):
    expected = set(linears(family))
    elsewhere = sum(1 for m in family.model.modules() if isinstance(m, nn.Linear)) - len(expected)
    add_adapters(family, LoraOptions(rank=4), seed=0)
    found = {name.rsplit("/", 1)[0].replace("/", ".") for name in adapters(family)}
    assert found == expected
    assert len(trainable_parameters(family)) == 2 * len(expected)
    language = {id(m) for m in family.language_model.modules()}
    rest = [m for m in family.model.modules() if id(m) not in language]
    assert sum(1 for m in rest if type(m) is nn.Linear) == elsewhere > 0


def test_gradients_reach_every_adapter_and_nothing_but_adapters(family, prompts):
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    engine = Engine(family, max_new_tokens=10)
    for score in (engine.score, engine.score_flat):
        family.model.zero_grad()
        score(prompts, *replies(family, prompts)).sum().backward()
        trained = {id(p) for p in trainable_parameters(family)}
        for name, parameter in family.model.named_parameters():
            assert parameter.requires_grad is (id(parameter) in trained), name
            if parameter.requires_grad:
                assert parameter.grad is not None, name
                assert parameter.grad.abs().sum() > 0, name
            else:
                assert parameter.grad is None, name


def test_the_engine_notices_a_step_of_the_adapters(family, prompts):
    add_adapters(family, LoraOptions(rank=4), seed=0)
    engine = Engine(family, max_new_tokens=10)
    first = sampled(engine, prompts)
    optimizer = torch.optim.AdamW(trainable_parameters(family), lr=1e-2, foreach=True)
    for _ in range(2):  # the first factors move from the second step on
        optimizer.zero_grad()
        engine.score(prompts, *replies(family, prompts)).sum().backward()
        optimizer.step()
    second = sampled(engine, prompts)
    assert not torch.equal(first.hidden, second.hidden)
    with torch.no_grad():
        torch.testing.assert_close(engine.score(prompts, second.ids, second.mask), second.logp, atol=1e-5, rtol=0)


def test_there_is_no_dropout_in_train_mode(family, prompts):
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    expected = scores(family, prompts)
    family.model.train()
    assert torch.equal(scores(family, prompts), expected)


def test_the_same_seed_gives_the_same_adapters_and_no_global_generator_moves():
    before = torch.get_rng_state()
    one, two, other = (load_family("tiny") for _ in range(3))
    for family, seed in ((one, 3), (two, 3), (other, 4)):
        add_adapters(family, LoraOptions(rank=4), seed=seed)
    assert torch.equal(before, torch.get_rng_state())
    first, second, third = (adapters(family).state_dict() for family in (one, two, other))
    assert all(torch.equal(first[name], second[name]) for name in first)
    for name, weight in first.items():
        if name.endswith("B.weight"):
            assert weight.abs().max() == 0, name
        else:
            bound = weight.shape[1] ** -0.5  # uniform in +-1 / sqrt(inputs)
            assert 0.9 * bound < weight.abs().max() <= bound, name
            assert not torch.equal(weight, third[name]), name


@pytest.mark.parametrize(("alpha", "added"), [(None, 1.0), (1.0, 0.125)])
def test_the_product_is_scaled_by_alpha_over_rank_and_alpha_is_twice_the_rank_by_default(alpha, added):
    family = load_family("tiny")
    add_adapters(family, LoraOptions(rank=4, alpha=alpha), seed=0)
    with torch.no_grad():
        for name, factor in adapters(family).items():
            factor.weight.fill_(0.5 if name.endswith("A") else 0.25)  # each entry of B A is 4 * 0.5 * 0.25 = 0.5
    base, merged = linears(reference(family)), linears(merged_copy(family))
    for name in base:
        torch.testing.assert_close(merged[name].weight, base[name].weight + added, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (LoraOptions(rank=-1), "--lora.rank -1 must be >= 0"),
        (LoraOptions(rank=8, alpha=0.0), "--lora.alpha 0.0 must be > 0"),
        (LoraOptions(rank=8, alpha=float("nan")), "--lora.alpha nan must be > 0"),
        (LoraOptions(alpha=16.0), "add, say, --lora.rank 32"),
        (LoraOptions(merge="none"), "--lora.merge none means nothing without adapters"),
        (LoraOptions(rank=8, merge="half"), "--lora.merge"),
        (LoraOptions(), "--lora.rank 0 trains all weights"),
    ],
)
def test_options_that_mean_no_adapters_are_refused_with_the_way_out(options, words):
    family = load_family("tiny")
    with pytest.raises(UserError, match=words.replace(".", r"\.")):
        add_adapters(family, options, seed=0)
    assert all(p.requires_grad for p in family.language_model.parameters())
    LoraOptions().validate()  # full fine-tuning is a valid choice, only not one for add_adapters


def test_adapters_are_not_added_twice():
    family = load_family("tiny")
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    before = {name: tensor.clone() for name, tensor in adapters(family).state_dict().items()}
    with pytest.raises(ValueError, match="adapters already"):
        add_adapters(family, LoraOptions(rank=4), seed=0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in adapters(family).state_dict().items())


# ---- reference and merged copy ---------------------------------------------------------------------------------------


def test_the_reference_is_the_base_exactly_and_stays_it_while_the_adapters_learn(family, engine, prompts):
    before, drawn = scores(family, prompts), sampled(engine, prompts)
    weights = {tensor.data_ptr() for tensor in family.model.parameters()}
    add_adapters(family, LoraOptions(rank=4), seed=0)
    base = reference(family)
    randomise(family)
    assert torch.equal(scores(base, prompts), before)
    again = sampled(Engine(base, max_new_tokens=10), prompts)
    assert torch.equal(again.ids, drawn.ids)
    assert torch.equal(again.logp, drawn.logp)
    assert (scores(family, prompts) - before).abs().max() > 1e-2
    assert {tensor.data_ptr() for tensor in base.model.parameters()} == weights  # nothing was copied


def test_the_reference_needs_no_second_look_when_the_adapters_learn(family, prompts):
    add_adapters(family, LoraOptions(rank=4), seed=0)
    engine = Engine(reference(family), max_new_tokens=10)
    sampled(engine, prompts)
    kept = len(engine._entries)
    randomise(family)
    engine._forget_stale()
    assert len(engine._entries) == kept > 0


def test_the_merged_copy_samples_and_scores_as_base_and_adapters_do(family, prompts):
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    apart, merged = Engine(family, max_new_tokens=10), Engine(merged_copy(family), max_new_tokens=10)
    one, two = sampled(apart, prompts), sampled(merged, prompts)
    assert torch.equal(one.ids, two.ids)
    torch.testing.assert_close(one.logp, two.logp, atol=2e-5, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(apart.score(prompts, one.ids, one.mask), two.logp, atol=2e-5, rtol=0)
        torch.testing.assert_close(merged.score_flat(prompts, one.ids, one.mask), two.logp, atol=2e-5, rtol=0)
    assert not torch.allclose(scores(reference(family), prompts), scores(family, prompts), atol=1e-2)


def test_the_merged_copy_holds_plain_linear_layers_and_shares_all_other_weights(family):
    adapted = set(linears(family))
    names = set(family.model.state_dict())
    add_adapters(family, LoraOptions(rank=4), seed=0)
    merged = merged_copy(family)
    assert set(merged.model.state_dict()) == names
    assert not hasattr(merged.language_model, "peft_config")
    assert set(linears(merged)) == adapted
    assert not any(p.requires_grad for p in merged.model.parameters())
    copied = {id(linear.weight) for linear in linears(merged).values()}
    original = {id(p) for p in family.model.parameters()}
    for name, parameter in merged.model.named_parameters():
        assert (id(parameter) in copied) is (id(parameter) not in original), name


def test_two_hundred_refreshes_leave_the_base_as_it_was_and_the_merged_weights_where_they_began(model_folder):
    family = load_family(str(model_folder("qwen2_vl")), dtype="bfloat16")
    add_adapters(family, LoraOptions(rank=4), seed=0)
    base = {name: tensor.clone() for name, tensor in reference(family).model.state_dict().items()}
    randomise(family)
    merged = merged_copy(family)
    first = {name: linear.weight.clone() for name, linear in linears(merged).items()}
    places = {name: linear.weight.data_ptr() for name, linear in linears(merged).items()}
    for seed in range(199):
        randomise(family, seed)
        refresh(merged, family)
    assert not torch.equal(first["layers.0.mlp.up_proj"], linears(merged)["layers.0.mlp.up_proj"].weight)
    randomise(family)
    refresh(merged, family)
    for name, linear in linears(merged).items():
        assert torch.equal(linear.weight, first[name]), name
        assert linear.weight.data_ptr() == places[name], name  # captured graphs stay valid
    for name, tensor in reference(family).model.state_dict().items():
        assert torch.equal(tensor, base[name]), name


def test_an_engine_of_the_merged_copy_notices_a_refresh(family, prompts):
    add_adapters(family, LoraOptions(rank=4), seed=0)
    merged = merged_copy(family)
    engine = Engine(merged, max_new_tokens=10)
    stale = sampled(engine, prompts)
    randomise(family)
    assert torch.equal(sampled(engine, prompts).hidden, stale.hidden)
    refresh(merged, family)
    fresh, expected = sampled(engine, prompts), sampled(Engine(family, max_new_tokens=10), prompts)
    assert not torch.allclose(fresh.hidden, stale.hidden, atol=1e-2)
    torch.testing.assert_close(fresh.hidden, expected.hidden, atol=1e-4, rtol=0)
    torch.testing.assert_close(fresh.logp, expected.logp, atol=2e-5, rtol=0)


# ---- bfloat16 --------------------------------------------------------------------------------------------------------


def test_a_bfloat16_model_trains_float32_adapters_and_scores_in_float32(source, prompts):
    family = load_family(source, dtype="bfloat16")
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    engine = Engine(family, max_new_tokens=10)
    logp = engine.score(prompts, *replies(family, prompts))
    assert logp.dtype == torch.float32
    logp.sum().backward()
    for parameter in trainable_parameters(family):
        assert parameter.dtype == parameter.grad.dtype == torch.float32
        assert parameter.grad.isfinite().all()
        before = parameter.detach().clone()
        with torch.no_grad():
            parameter.mul_(1.0 + 1e-5)  # a step that bfloat16 (8 bits) would lose
        assert not torch.equal(parameter, before)


def test_a_bfloat16_merged_copy_scores_as_base_and_adapters_do_but_for_rounding(source, prompts):
    family = load_family(source, dtype="bfloat16")
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    merged = merged_copy(family)
    assert all(linear.weight.dtype == torch.bfloat16 for linear in linears(merged).values())
    apart = scores(family, prompts)
    rounding = (scores(merged, prompts) - apart).abs().mean()
    learnt = (scores(reference(family), prompts) - apart).abs().mean()
    assert rounding < 0.4 * learnt  # 0.08 to 0.16 was measured


def test_the_products_of_a_bfloat16_models_adapters_are_of_16_bit_numbers(monkeypatch):
    family = load_family("tiny", dtype="bfloat16")
    add_adapters(family, LoraOptions(rank=4), seed=0)
    layer = family.language_model.layers[0].mlp.up_proj
    products = []

    class Summing:
        @staticmethod
        def apply(x, weight):
            products.append((x.dtype, weight.dtype))
            return x.float() @ weight.float().t()

    class Recorder(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.nn.functional.linear:
                products.append((args[0].dtype, args[1].dtype))
            return func(*args, **(kwargs or {}))

    monkeypatch.setattr(lora, "Float32Product", Summing)  # on CUDA it takes 16-bit numbers and sums in float32
    with Recorder():
        assert layer(torch.ones(2, layer.in_features, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert products == [(torch.bfloat16, torch.bfloat16)] * 3  # the base and the two factors


def test_what_an_adapter_adds_reaches_a_bfloat16_layer_even_below_half_a_step_of_its_output():
    family = load_family("tiny", dtype="bfloat16")
    add_adapters(family, LoraOptions(rank=4, alpha=4), seed=0)
    layer = family.language_model.layers[0].mlp.up_proj
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4096, layer.in_features, generator=generator).bfloat16()
    before = layer(x).float()
    with torch.no_grad():
        layer.lora_A["default"].weight.fill_(0.0)
        layer.lora_A["default"].weight[:, 0] = 1.0
        layer.lora_B["default"].weight.fill_(1e-5)  # adds 4e-5 times the first input
    added = 4e-5 * x[:, :1].float()
    step = 2.0**-8 * before.abs()
    assert (added.abs() < 0.5 * step).float().mean() > 0.9  # rounded twice, these would add nothing
    moved = layer(x).detach().float() - before.detach()
    share = float((moved * added).sum() / (added.square().sum() * moved.shape[1]))
    assert 0.8 < share < 1.2  # 1 on average; 0.02 was measured where the base's product is rounded first


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("merge", ["none", "model", "float32"])
def test_every_way_to_merge_samples_what_base_and_adapters_score(merge, dtype, static, source, prompts):
    family = load_family(source, dtype=dtype)
    prompts = [family.encode(messages(picture(seed), "Say a word.")) for seed in (1, 2, 1)]
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    sampler = family if merge == "none" else merged_copy(family, float32=merge == "float32")
    out = sampled(Engine(sampler, max_new_tokens=6, static=static), prompts)
    with torch.no_grad():
        gap = (Engine(family, max_new_tokens=6).score(prompts, out.ids, out.mask) - out.logp)[out.mask].abs()
    assert gap.max() < 2e-5 if dtype == "float32" else gap.mean() < 0.05
    assert out.hidden.abs().sum() > 0


def test_weights_merged_in_float32_keep_what_the_models_type_would_round_away():
    family = load_family("tiny", dtype="bfloat16")
    add_adapters(family, LoraOptions(rank=1, alpha=1), seed=0)
    layer = family.language_model.layers[0].mlp.up_proj
    with torch.no_grad():
        layer.base_layer.weight.fill_(1.0)
        layer.lora_A["default"].weight.fill_(1.0)
    rounded, fine = merged_copy(family), merged_copy(family, float32=True)
    with torch.no_grad():
        layer.lora_B["default"].weight.fill_(2.0**-12)
    for merged, expected in ((rounded, 1.0), (fine, 1.0 + 2.0**-12)):
        linear = merged.language_model.layers[0].mlp.up_proj
        place = linear.weight.data_ptr()
        refresh(merged, family)
        assert linear.weight.unique().tolist() == [expected]
        assert linear.weight.data_ptr() == place
        assert linear(torch.ones(1, linear.in_features, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_merged_weights_are_summed_in_float32_and_rounded_once():
    family = load_family("tiny", dtype="bfloat16")
    add_adapters(family, LoraOptions(rank=2, alpha=2), seed=0)
    layer = family.language_model.layers[0].mlp.up_proj
    ulp = 2.0**-7  # of bfloat16 at 1
    with torch.no_grad():
        layer.base_layer.weight.fill_(1.0)
        layer.lora_A["default"].weight.fill_(1.0)
        layer.lora_B["default"].weight[:, 0] = 256.0  # the two terms cancel to 0.75 ulp: lost if rounded on the way
        layer.lora_B["default"].weight[:, 1] = -256.0 + 0.75 * ulp
    merged = merged_copy(family)
    assert merged.language_model.layers[0].mlp.up_proj.weight.unique().tolist() == [1.0 + ulp]


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def test_adapters_alone_are_saved_and_restored(family, prompts):
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    expected = scores(family, prompts)
    saved = {n: t.clone() for n, t in module_tensors("adapters", adapters(family)).items()}
    assert len(saved) == len(trainable_parameters(family))
    assert "adapters.layers/0/self_attn/q_proj/A.weight" in saved
    randomise(family, 2)
    assert not torch.equal(scores(family, prompts), expected)
    load_module("adapters", adapters(family), saved)
    assert torch.equal(scores(family, prompts), expected)


def test_adapters_of_another_rank_are_refused():
    one, two = load_family("tiny"), load_family("tiny")
    add_adapters(one, LoraOptions(rank=4), seed=0)
    add_adapters(two, LoraOptions(rank=8), seed=0)
    with pytest.raises(UserError, match="another model"):
        load_module("adapters", adapters(two), module_tensors("adapters", adapters(one)))


@pytest.mark.parametrize("rank", [0, 4])
@torch.no_grad()
def test_an_exported_model_is_a_plain_checkpoint_with_the_merged_models_logits(family, rank, tmp_path):
    from transformers import AutoModelForImageTextToText, AutoTokenizer

    family.tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    family.model.save_pretrained(tmp_path / "before")
    if rank:
        add_adapters(family, LoraOptions(rank=rank), seed=0)
        randomise(family)
    folder = export_merged(family, tmp_path / "model")
    names = {path.name for path in folder.iterdir()}
    assert {"config.json", "generation_config.json", "model.safetensors", "chat_template.jinja"} <= names
    assert "adapter_config.json" not in names
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("before", "model"))
    assert {n: (t.shape, t.dtype) for n, t in before.items()} == {n: (t.shape, t.dtype) for n, t in after.items()}
    config, old = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("model", "before"))
    assert config == old
    loaded = AutoModelForImageTextToText.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = torch.tensor([tokenizer.encode("target 3 current 7", add_special_tokens=False)])
    assert ids[0].tolist() == family.encode_text("target 3 current 7")
    expected = merged_copy(family).model(input_ids=ids).logits
    assert torch.equal(loaded(input_ids=ids).logits, expected)
    assert torch.allclose(family.model(input_ids=ids).logits, expected, atol=1e-4)
    assert list(tmp_path.glob(".*")) == []


def test_exporting_again_replaces_the_model_and_a_failed_export_leaves_it(tmp_path, monkeypatch):
    family = load_family("tiny")
    add_adapters(family, LoraOptions(rank=4), seed=0)
    folder = tmp_path / "model"
    folder.mkdir()
    first = load_file(export_merged(family, folder) / "model.safetensors")
    name = next(name for name in first if name.endswith("layers.0.mlp.up_proj.weight"))
    randomise(family)

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(type(family.tokenizer), "save_pretrained", fail)
        with pytest.raises(OSError, match="disk full"):
            export_merged(family, folder)
    assert torch.equal(load_file(folder / "model.safetensors")[name], first[name])
    export_merged(family, folder)
    assert not torch.equal(load_file(folder / "model.safetensors")[name], first[name])
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_exported_model_can_be_trained_and_exported_again(family, prompts, tmp_path):
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    again = load_family(str(export_merged(family, tmp_path / "one")))
    assert type(again) is type(family)
    assert torch.equal(scores(again, prompts), scores(merged_copy(family), prompts))
    add_adapters(again, LoraOptions(rank=4), seed=0)
    export_merged(again, tmp_path / "two")
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)  # new adapters add exactly nothing


def test_an_exported_model_keeps_the_settings_of_its_image_processor(tmp_path):
    family = load_family("tiny")
    first = export_merged(family, tmp_path / "first")
    settings = json.loads((first / "preprocessor_config.json").read_text())
    assert settings["image_mean"] == list(family.mean)
    settings |= {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.5] * 3, "note": "kept"}
    (first / "preprocessor_config.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match=r"preprocessor_config\.json has \d+ bytes.*delete checksums\.json"):
        load_family(str(first))
    (first / "checksums.json").unlink()  # as the message says
    loaded = load_family(str(first))
    add_adapters(loaded, LoraOptions(rank=4), seed=0)
    assert load_family(str(export_merged(loaded, tmp_path / "second"))).mean == [0.1, 0.2, 0.3]
    assert json.loads((export_merged(loaded, first) / "preprocessor_config.json").read_text()) == settings


def test_an_export_does_not_delete_a_folder_that_holds_something_else(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="choose a new or empty folder"):
        export_merged(load_family("tiny"), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"

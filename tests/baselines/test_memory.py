"""What a run takes is known before it begins, and what does not fit is made smaller: counted against real passes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from samples import picture
from stage import SMALL

from baselines import archer, grpo, loop, vldac
from baselines.engine.batching import common_prefix
from baselines.engine.dry_run import LivingBytes, peak_bytes, update_bytes
from baselines.engine.engine import Engine
from baselines.learning import fit, presets
from baselines.learning import run as run_module
from baselines.learning.memory import GIB, SHARE, rows_of_pass
from baselines.learning.plan import make_plan, show_plan
from baselines.learning.update import memory_advice
from baselines.learning.warm_start import WarmConfig
from baselines.learning.weights import engines
from baselines.learning.worst_case import longest_prompt
from baselines.models import lora
from baselines.models.load import FAMILIES, load_family
from baselines.models.lora import LoraOptions
from baselines.models.shapes import META, shape_family
from baselines.models.tiny import PARAMETERS, TinyConfig, build_tiny
from vlgym.errors import UserError

ROWS, REPLY = 5, 20
TINY = TinyConfig(layers=3)
QWEN2_VL_7B = {
    "model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"], "vocab_size": 152064,
    "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
    "num_key_value_heads": 4, "tie_word_embeddings": False, "max_position_embeddings": 32768, "rope_theta": 1e6,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}, "image_token_id": 151655,
    "video_token_id": 151656, "vision_start_token_id": 151652, "vision_end_token_id": 151653,
    "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "num_heads": 16, "mlp_ratio": 4},
}  # fmt: skip
"""Shapes of the published config.json."""


@pytest.fixture(autouse=True)
def _as_a_run_sets_torch_up():
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="module")
def shapes_of_7b(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qwen2-vl-7b")
    (folder / "config.json").write_text(json.dumps(QWEN2_VL_7B))
    return folder


def ready(name: str, kind: torch.dtype, device: torch.device | str, rank: int, *, recompute: bool) -> Engine:
    """An engine of a tiny family, its vision tower frozen."""
    net, words = build_tiny(TINY, family=name)
    family = FAMILIES[name][1](net.to(device, kind), words)
    for parameter in family.vision_parameters():
        parameter.requires_grad_(False)
    if rank:
        lora.add_adapters(family, LoraOptions(rank=rank), seed=0)
    if recompute:
        family.recompute_activations()
    return Engine(family, max_new_tokens=1)


@pytest.mark.parametrize("recompute", [False, True], ids=["kept", "recomputed"])
@pytest.mark.parametrize(("kind", "rank"), [(torch.float32, 0), (torch.bfloat16, 8)], ids=["all", "adapters"])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_dry_run_counts_what_a_real_update_takes(name, kind, rank, recompute):
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    engine = ready(name, kind, "cpu", rank, recompute=recompute)
    prompts = []
    for i, word in enumerate(["a", "word", "move", "left", "turn"]):  # nothing in common, and not all of one length
        text = {"type": "text", "text": f" {word}" * (90 if i else 80)}
        content = [text, {"type": "image", "image": picture(i, (112, 112))}]
        prompts.append(fit.another(engine.family.encode([{"role": "user", "content": content}]), i))
    assert common_prefix(prompts) == 0
    ids = torch.full((ROWS, REPLY), 40)
    engine.features([image for prompt in prompts for image in prompt.images], train=False)
    shapes = ready(name, kind, META, rank, recompute=recompute)
    for flat, score in ((True, engine.score_flat), (False, engine.score)):
        taken = peak_bytes(lambda score=score: score(prompts, ids, ids > 0).sum().backward())
        engine.family.model.zero_grad(set_to_none=True)
        assert update_bytes(shapes, ROWS, max(map(len, prompts)), REPLY, flat=flat) == pytest.approx(taken, rel=0.15)


def test_living_tensors_are_counted_until_they_are_dropped_and_views_not_again():
    with LivingBytes() as living:
        x = torch.zeros(1000)
        y = x.view(10, 100).t()
        assert living.now == 4000
        z = x + 1
        assert living.now == 8000
        del x, y
        assert living.now == 4000
        z.mul_(2)
        assert (living.now, living.peak) == (4000, 8000)


def test_the_dry_run_of_a_7b_model_takes_what_was_measured_per_token(shapes_of_7b):
    """6 MB a token of activations, layer by layer: the figure that was once measured by hand was 5.94."""
    family, own = shape_family(str(shapes_of_7b), dtype="bfloat16")
    assert not own
    assert sum(p.numel() for p in family.model.parameters()) == pytest.approx(8.29e9, rel=0.001)
    lora.add_adapters(family, LoraOptions(rank=16), seed=0)
    engine = Engine(family, max_new_tokens=1)
    one, three = (update_bytes(engine, rows, 300, 128, flat=True) for rows in (1, 3))
    assert 5.5e6 < (three - one) / (2 * 428) < 7.5e6
    family.recompute_activations()
    one, three = (update_bytes(engine, rows, 300, 128, flat=True) for rows in (1, 3))
    assert (three - one) / (2 * 428) < 1.5e6


@pytest.mark.parametrize("recompute", [False, True])
def test_the_first_layers_of_a_deep_model_stand_for_the_others(recompute, monkeypatch):
    from baselines.engine import dry_run

    net, words = build_tiny(TinyConfig(layers=9))
    family = FAMILIES["qwen2_vl"][1](net.to(META), words)
    lora.add_adapters(family, LoraOptions(rank=2), seed=0)
    if recompute:
        family.recompute_activations()
    engine, taken = Engine(family, max_new_tokens=1), []
    for few in (4, 9):
        monkeypatch.setattr(dry_run, "FEW", few)
        taken.append(update_bytes(engine, 3, 50, 20, flat=True))
    assert taken[0] == pytest.approx(taken[1], rel=0.01)


def test_the_tiny_models_plan_has_its_parameters():
    family, own = shape_family("tiny")
    assert own
    assert family.device == META
    assert sum(p.numel() for p in family.model.parameters()) == PARAMETERS


# ---- the plan --------------------------------------------------------------------------------------------------------


def planned(**changes):
    return vldac.Config(**{"model": "tiny", "plan": True, "plan_gib": 1.0, "lora": LoraOptions(rank=4), **changes})


def test_a_plan_is_printed_and_nothing_is_trained(capsys, tmp_path, monkeypatch):
    from baselines.learning import command

    monkeypatch.setattr("sys.argv", ["vldac", "--plan", "--out", str(tmp_path / "run"), "--lora.rank", "4"])
    command.main(vldac.Config, vldac.train, "")
    text = capsys.readouterr().out
    for words in ("longest prompt met:", "language model, 1.01 million", "adapters", "update", "it fits into"):
        assert words in text
    assert not (tmp_path / "run").exists()


def test_a_published_model_is_planned_without_its_weights(shapes_of_7b, capsys):
    config = presets.apply(vldac.Config(), "paper-miniworld")
    config = replace(
        config, env="vlgym/EZPoints-v0", model=str(shapes_of_7b), device="cuda", plan=True, plan_gib=80.0,
        micro_tokens=None, recompute=False,
    )  # fmt: skip
    plan = show_plan(config)
    assert not plan.fits
    assert plan.total("update") > 200 * GIB  # as the paper's settings were before they said how much to take at once
    text = capsys.readouterr().out
    assert "counted with the tiny models' tokenizer" in text
    assert "to fit: --micro-batch" in text
    assert "--recompute" in text


@pytest.mark.parametrize("name", [name for name in presets.PRESETS if name.startswith("paper-")])
def test_every_preset_fits_a_7b_model_into_80_gb(name, shapes_of_7b):
    learner = loop if name == "paper-loop" else vldac
    config = replace(
        presets.apply(learner.Config(), name), env="vlgym/EZPoints-v0", model=str(shapes_of_7b), device="cuda",
        plan=True, plan_gib=80e9 / GIB, image_tokens=64,
    )  # fmt: skip
    plan = make_plan(config.resolve())[0]
    assert plan.fits, [(item.name, item.size / GIB) for item in plan.items]


def test_masters_moments_and_the_reference_are_counted():
    def sizes(**changes):
        plan = make_plan(planned(**{"lora": LoraOptions(), **changes}).resolve())[0]
        return {item.name.split(",")[0].split(" for ")[0]: item.size for item in plan.items}

    text = PARAMETERS - sum(p.numel() for p in load_family("tiny").vision_parameters())
    plain, half = sizes(), sizes(dtype="bfloat16")
    assert plain["optimizer"] == half["optimizer"] == 8 * text
    assert (plain["language model"], half["language model"]) == (4 * text, 2 * text)
    assert (plain["reference"], half["reference"]) == (4 * text, 2 * text)
    assert half["float32 copies of the trained weights"] == 4 * text
    assert "reference" not in sizes(kl_coef=0.0)
    assert "copy with adapters merged" in sizes(lora=LoraOptions(rank=2))
    archers = make_plan(archer.Config(plan=True, model="tiny").resolve())[0]
    assert any(item.name.startswith("reference") for item in archers.items)


def test_the_rows_of_a_pass_follow_batch_and_tokens():
    assert rows_of_pass(vldac.Config(micro_batch=8), 100) == 8
    assert rows_of_pass(vldac.Config(micro_batch=8, minibatch=4), 100) == 4
    assert rows_of_pass(vldac.Config(micro_tokens=550), 100) == 5
    assert rows_of_pass(vldac.Config(micro_tokens=50), 100) == 1


def test_the_largest_pass_that_is_named_fits_and_one_of_more_rows_does_not():
    def ask(**changes):
        return make_plan(planned(plan_gib=0.1, image_tokens=4, **changes).resolve())

    plan, _, advice, _ = ask()
    assert not plan.fits
    rows = int(advice.split("--micro-batch ")[1].split(",")[0])
    assert ask(micro_batch=rows)[0].total("update") <= SHARE * 0.1 * GIB < ask(micro_batch=rows + 2)[0].total("update")


def test_the_longest_prompt_has_a_full_history_of_long_replies():
    from vlgym.prompts import PromptBuilder

    family = load_family("tiny", image_tokens=4)
    ids = ["vlgym/NumberLine-v0"]
    plain = longest_prompt(ids, family, new_tokens=30)
    full = longest_prompt(ids, family, new_tokens=30, builder=PromptBuilder(3, 2))
    assert len(full.images) == 2
    assert len(full) > len(plain) + 3 * 30


# ---- the fit ---------------------------------------------------------------------------------------------------------


def limited(monkeypatch, rows: int) -> list[int]:
    """Have memory run out in passes over more than so many replies; noted is how many were tried."""
    tried: list[int] = []
    plain = Engine.score_states

    def score(self, prompts, *args, **kwargs):
        if torch.is_grad_enabled():
            tried.append(len(prompts))
            assert len({prompt.key for prompt in prompts}) == len(prompts) or len(tried) > 6
            if len(prompts) > rows:
                raise torch.OutOfMemoryError("pretended")
        return plain(self, prompts, *args, **kwargs)

    monkeypatch.setattr(Engine, "score_states", score)
    return tried


SHORT = {**SMALL, "updates": 1, "eval_episodes": 0, "warm": WarmConfig(steps=0)}


def small(tmp_path: Path, name: str, **changes):
    return vldac.Config(**{**SHORT, "value_warmup": 0, "out": tmp_path / name, **changes})


def test_passes_are_halved_until_they_fit(tmp_path, monkeypatch, capsys):
    tried = limited(monkeypatch, 3)
    run = vldac.train(small(tmp_path, "run", fit="on", num_envs=8, minibatch=24, micro_batch=24))
    assert tried[:4] == [24, 12, 6, 3]
    assert max(tried[4:]) == 3
    assert run.config.micro_batch == 3
    assert "--micro-batch 3 instead of 24" in capsys.readouterr().out


def test_passes_by_tokens_are_halved_too(tmp_path, monkeypatch, capsys):
    limited(monkeypatch, 3)
    with run_module.Run(small(tmp_path, "run", fit="on", num_envs=8, minibatch=24, micro_tokens=100_000)) as run:
        pass
    prompt = longest_prompt(run.envs.ids, run.weights.family, new_tokens=12)
    assert run.config.micro_tokens == 3 * (len(prompt) + 12)
    assert "instead of 100000" in capsys.readouterr().out


def test_a_run_of_which_not_one_row_fits_is_refused_with_what_is_there(tmp_path, monkeypatch):
    limited(monkeypatch, 0)
    with pytest.raises(UserError, match=r"Not even one reply of 12 tokens .* optimizer.*--recompute.*--plan"):
        vldac.train(small(tmp_path, "run", fit="on"))


def test_a_trial_changes_no_number_of_the_run(tmp_path):
    plain, tried = (vldac.train(small(tmp_path, fit, fit=fit)) for fit in ("off", "on"))
    for name, tensor in plain.weights.tensors().items():
        assert torch.equal(tensor, tried.weights.tensors()[name]), name


def test_a_trial_holds_the_memory_that_comes_later(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(fit, "_fits", lambda *args: seen.append(args) or True)
    with run_module.Run(small(tmp_path, "run", fit="on")) as run:
        trained = sum(p.numel() for p in run.weights.parameters)
    assert seen[0][-1] >= 8 * trained


def test_nothing_is_tried_on_a_cpu_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(fit, "longest_prompt", lambda *args, **kwargs: pytest.fail("tried"))
    with run_module.Run(small(tmp_path, "run")):
        pass


# ---- after collecting ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("learner", "more"), [(vldac, {}), (grpo, {"group": 2}), (archer, {"critic_steps": 1})])
def test_keys_and_values_of_prompts_are_dropped_before_gradients_and_features_kept(
    tmp_path, monkeypatch, learner, more
):
    held, optimizer = [], "policy_step"
    owner = {vldac: vldac.VLDAC, grpo: loop.LOOP, archer: archer.ArCHer}[learner]
    plain, put = getattr(owner, optimizer), []

    def step(self, *args, **kwargs):
        held.append([(len(engine._entries), len(engine._features)) for engine in engines(self.weights)])
        return plain(self, *args, **kwargs)

    prefill = Engine.prefill_cached

    def noted(self, prompts):
        put.append(sum(x.nbytes for entry in prefill(self, prompts) for x in entry))
        return prefill(self, prompts)

    monkeypatch.setattr(owner, optimizer, step)
    monkeypatch.setattr(Engine, "prefill_cached", noted)
    warm_up = {"critic_warmup": 0} if learner is archer else {"value_warmup": 0} if learner is vldac else {}
    config = learner.Config(**{**SHORT, "out": tmp_path / "run", "lr": 1e-3, **more, **warm_up})
    learner.train(config)
    assert held
    assert all(entries == 0 for row in held for entries, _ in row)
    assert max(features for row in held for _, features in row) > 0
    assert max(put) > 1000


def test_share_of_the_device_is_planned_with():
    plan = make_plan(planned().resolve())[0]
    assert replace(plan, device_bytes=int(plan.peak / SHARE) + 1).fits
    assert not replace(plan, device_bytes=int(plan.peak / SHARE) - 1).fits


def test_running_out_of_memory_names_the_plan():
    with pytest.raises(UserError, match="--plan says"), memory_advice("smaller."):
        raise torch.OutOfMemoryError("CUDA out of memory")


def test_logits_in_chunks_of_a_bfloat16_model_have_the_gradients_of_all_at_once(family, prompts, monkeypatch):
    from baselines.engine import scorer

    for parameter in family.model.parameters():
        parameter.data = parameter.data.bfloat16()
    engine, gradients = Engine(family, max_new_tokens=4), []
    ids = torch.full((len(prompts), 6), 40, device=family.device)
    for chunk in (scorer.LOGIT_CHUNK, 4 * engine.suppress.shape[0]):
        monkeypatch.setattr(scorer, "LOGIT_CHUNK", chunk)
        engine.score_flat(prompts, ids, ids > 0).sum().backward()
        gradients.append(family.model.lm_head.weight.grad.float().clone())
        family.model.zero_grad(set_to_none=True)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=0.05, atol=0.05 * float(gradients[0].abs().max()))

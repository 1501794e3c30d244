"""Options of a learner: defaults, presets, saved ones in a resumed run, and their help."""

import importlib
import json
import re
import shlex
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import get_args, get_type_hints

import pytest

from baselines import grpo, loop, rl4vlm, sft, vldac
from baselines.learning import config as presets
from baselines.learning.collect import count_image_tokens
from baselines.learning.command import main, parse
from baselines.learning.state import list_repeated, saved_config
from baselines.learning.warm_start import WarmConfig
from baselines.models.folders import TrainedLimits
from baselines.models.lora import LoraOptions
from baselines.runs.distributed import device_in_words
from baselines.runs.folder import write_record
from baselines.vldac import Config
from vlgym.errors import UserError

PUBLISHED = "Qwen/Qwen2-VL-2B-Instruct"


@pytest.fixture(autouse=True)
def _any_device(monkeypatch):
    monkeypatch.setattr(presets, "check_device", lambda device: None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"model": PUBLISHED, "device": "cuda"}, ("bfloat16", 16, 5e-5)),
        ({"model": PUBLISHED, "device": "cuda", "lora": LoraOptions(rank=0)}, ("float32", 0, 1e-6)),
        ({"model": PUBLISHED, "device": "cuda", "dtype": "float32"}, ("float32", 16, 5e-5)),
        ({"model": PUBLISHED, "device": "cuda", "train_vision": True}, ("float32", 0, 1e-6)),
        ({"model": PUBLISHED}, ("float32", 0, 1e-6)),
        ({"model": PUBLISHED, "lora": LoraOptions(rank=8)}, ("float32", 8, 5e-5)),
        ({}, ("float32", 0, 3e-4)),
    ],
)  # fmt: skip
def test_published_models_on_cuda_train_adapters_in_bfloat16(options, expected):
    c = Config(**options).resolve()
    assert (c.dtype, c.lora.rank, c.lr) == expected


@pytest.mark.parametrize(
    ("cuda", "mps", "chosen", "words"),
    [
        (True, False, "cuda", "cuda (H200, 139 GiB)"), (False, True, "mps", "mps"),
        (False, False, "cpu", "cpu (no CUDA or MPS device here)"),
    ],
)  # fmt: skip
def test_the_device_is_cuda_else_mps_else_the_cpu(cuda, mps, chosen, words, monkeypatch):
    card = SimpleNamespace(name="H200", total_memory=139 * 2**30)
    monkeypatch.setattr("torch.cuda.is_available", lambda: cuda)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: mps)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda device: card)
    config = Config().resolve()
    assert (config.device, device_in_words(config.device)) == (chosen, words)
    assert Config(device="cpu").resolve().device == "cpu"


def test_published_is_what_was_not_built_here(tmp_path):
    config = {"model_type": "qwen2_vl", "vlgym_tiny": {"layers": 2}}
    for name, data in (("warm", config), ("other", {"model_type": "qwen2_vl"}), ("adapters", None)):
        (tmp_path / name).mkdir()
        if data:
            (tmp_path / name / "config.json").write_text(json.dumps(data))
    named = {"peft_type": "LORA", "base_model_name_or_path": str(tmp_path / "warm")}
    (tmp_path / "adapters/adapter_config.json").write_text(json.dumps(named))
    (tmp_path / "adapters/adapter_model.safetensors").touch()
    paths = [str(tmp_path / name) for name in ("warm", "other", "adapters")]
    configs = [Config(model=path, device="cuda").resolve() for path in paths]
    assert [(c.lr, c.lora.rank, c.dtype, c.threads) for c in configs] == [
        (3e-4, 0, "float32", 1), (5e-5, 16, "bfloat16", 0), (3e-4, 0, "float32", 1),
    ]  # fmt: skip


def test_all_weights_are_not_trained_in_bfloat16():
    warm = {"lora": LoraOptions(rank=4), "warm": WarmConfig(steps=2)}
    for options in ({"lora": LoraOptions(rank=0)}, warm):
        with pytest.raises(UserError, match=r"bfloat16: .* trains all weights.* --lora\.rank 16"):
            Config(model=PUBLISHED, dtype="bfloat16", **options).resolve()


def test_image_tokens_are_those_of_the_environments_or_of_the_training(tmp_path):
    names = ("NumberLine", "EZPoints", "OneRoom", "WebShop")
    number, cards, room, page = (f"vlgym/{name}-v1" for name in names)
    mixes = ([number], [room], [number, cards], [cards, page])
    assert [count_image_tokens("tiny", ids) for ids in mixes] == [16, 16, 36, 64]
    for name, text in TrainedLimits(image_tokens=9).note().items():
        (tmp_path / name).write_text(json.dumps(text))
    models = (str(tmp_path), PUBLISHED)
    assert [count_image_tokens(model, [number]) for model in models] == [9, None]


def record(config, folder):
    """Write a run's record; return the configuration that resumes it."""
    values = {"algorithm": config.algorithm, **asdict(config)}
    write_record(folder / "run.json", {"config": values, "environments": {}})
    return type(config)(out=folder, resume=True)


def test_the_largest_gap_may_change_on_resuming_and_adapters_may_not(tmp_path):
    config = record(Config(lora=LoraOptions(rank=8), max_logp_gap=0.2).resolve(), tmp_path)
    assert saved_config(replace(config, max_logp_gap=0.5)).max_logp_gap == 0.5
    assert saved_config(replace(config, lora=LoraOptions(rank=8))).lora == LoraOptions(rank=8)
    with pytest.raises(UserError, match=r"has --lora\.rank 8, but 4 was asked for"):
        saved_config(replace(config, lora=LoraOptions(rank=4)))


@pytest.mark.parametrize("saved", [{"no_such": 1}, {"lora": {"no_such": 1}}])
def test_an_option_of_another_version_is_named_on_resuming(saved, tmp_path):
    write_record(tmp_path / "run.json", {"config": {"algorithm": "VL-DAC", **saved}, "environments": {}})
    words = "does not know, 'no_such'; resume it with the version that began it"
    with pytest.raises(UserError, match=words):
        saved_config(Config(out=tmp_path, resume=True))


TEXTS = {"parser": "here:Parser", "envs": "ray://127.0.0.1:1", "env_kwargs": ("max_turns=4", "parser=a b:C")}


def moved(config):
    """The configuration with every option, those of groups too, away from its default."""
    values, hints = {}, get_type_hints(type(config))
    for item in fields(config):
        standard, hint = getattr(config, item.name), hints[item.name]
        kinds = get_args(hint) or (hint,)
        if is_dataclass(standard):
            values[item.name] = moved(standard)
        elif item.name in TEXTS or str in kinds:
            values[item.name] = TEXTS.get(item.name, "another")
        elif Path in kinds:
            values[item.name] = Path("my models") / item.name
        elif bool in kinds:
            values[item.name] = not standard
        elif int in kinds or float in kinds:
            values[item.name] = (standard or 0) + (1 if int in kinds else 0.25)
        else:
            values[item.name] = next(kind for kind in kinds if kind != standard)
    assert [name for name, value in values.items() if value == getattr(config, name)] == []
    return replace(config, **values)


@pytest.mark.parametrize(
    "learner",
    ["self_play", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("rl4vlm", "grpo", "archer"))],
)
def test_the_command_that_a_stopped_run_prints_resumes_it_with_every_option(learner, tmp_path):
    kind = importlib.import_module(f"baselines.{learner}").Config
    config = replace(moved(kind()), out=tmp_path)
    record(config, tmp_path)
    words = ["--resume", "--out", str(tmp_path), *shlex.split(list_repeated(config))]
    assert saved_config(parse(kind, None, words)) == config


def test_help_of_a_learner_fits_and_names_the_command_as_it_is_typed(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.argv", ["sft.py", "--help"])
    with pytest.raises(SystemExit):
        main(sft.Config, sft.run, sft.__doc__)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().out).splitlines()
    assert lines[0] == "usage: python -m baselines.sft [-h] [OPTIONS]"
    assert [line for line in lines[1:] if len(line) > 80 and not line.startswith("    python -m")] == []


def test_a_wrong_option_of_a_learner_steers_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["sft.py", "--lrr\x1b]0;x", "1"])
    with pytest.raises(SystemExit, match="2"):
        main(sft.Config, sft.run, sft.__doc__)
    error = capsys.readouterr().err
    assert r"\x1b]0;x" in error
    assert "\x1b" not in error


def test_a_budget_in_environment_steps_alone_bounds_no_updates():
    config = Config(updates=None, env_steps=50_000)
    assert config.resolve().most_updates >= 50_000
    assert replace(config, env_steps=None).resolve().most_updates == 80


def test_every_preset_suits_a_learner_and_its_values_are_in_range():
    for name in presets.PRESETS:
        suited = []
        for config in (vldac.Config, rl4vlm.Config, loop.Config, grpo.Config):
            with suppress(UserError):  # a preset of another learner
                suited.append(presets.apply_preset(config(model=PUBLISHED, device="cuda"), name))
        assert {config.resolve().preset for config in suited} == {name}


def test_presets_have_the_values_that_the_papers_name():
    dac = {
        "lr": 5e-5, "final_lr": 0.002, "epochs": 2, "minibatch": 128, "kl_coef": 0.05, "value_warmup": 2,
        "env_steps": 51_200, "gamma": 0.99, "gae_lambda": 0.95, "history_images": 4,
    }  # fmt: skip
    named = {
        "paper-miniworld": dac, "paper-alfworld": dac,
        "paper-ezpoints": {**dac, "gamma": 1.0, "gae_lambda": 1.0, "history_images": 1},
        "paper-webshop": {**dac, "env_steps": 2_000, "history_images": 2},
        "paper-rl4vlm": {
            "lr": 1e-5, "final_lr": 1e-4, "epochs": 4, "minibatch": 128, "env_steps": 15_000, "clip": 0.1,
            "gamma": 0.9, "gae_lambda": 0.95, "value_coef": 0.5, "max_grad_norm": 0.01,
        },
        "paper-loop": {"group": 6, "num_envs": 40 * 6, "minibatch": 32, "lr": 5e-5, "final_lr": 1.0, "updates": 75},
        "magebench-rl": {
            "kl_coef": 0.001, "reward.repetition_penalty": 0.2, "reward.length_bonus": 0.001,
            "reward.length_limit": 200,
        },
    }  # fmt: skip
    assert {name for name, values in named.items() if not values.items() <= presets.PRESETS[name].items()} == set()


def test_options_beside_a_preset_win():
    words = ["--preset", "paper-ezpoints", "--gamma", "0.5", "--lora.rank", "4"]
    config = parse(vldac.Config, None, words)
    assert (config.preset, config.gamma) == ("paper-ezpoints", 0.5)
    assert (config.lora.rank, config.lora.alpha) == (4, 32.0)


def test_a_published_model_on_cuda_plays_many_short_rollouts(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)

    def sizes(*words):
        config = parse(vldac.Config, None, words)
        return config.num_envs, config.rollout_steps

    published = ("--model", "Qwen/Qwen2-VL-2B-Instruct")
    assert sizes(*published) == (128, 2)
    assert sizes(*published, "--num-envs", "8") == (8, 2)
    assert sizes(*published, "--preset", "24gb") == (16, 16)
    assert sizes(*published, "--device", "cpu") == sizes() == (32, 8)


def test_unknown_presets_and_those_of_other_learners_are_refused():
    with pytest.raises(UserError, match="paper-miniworld"):
        presets.apply_preset(vldac.Config(), "paper-miniwrld")
    with pytest.raises(UserError, match="group, which this learner does not have"):
        presets.apply_preset(vldac.Config(), "paper-loop")
    assert presets.chosen(loop.Config, ["--preset=paper-loop"]).group == 6
    assert presets.chosen(vldac.Config, ["--seed", "1"]) == vldac.Config()


def test_presets_are_listed_with_hardware_and_minutes(capsys):
    for words in (["--preset"], ["--seed", "1", "--preset", "list"]):
        with pytest.raises(SystemExit, match=r"^0$"):
            parse(vldac.Config, None, words)
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines] == list(presets.PRESETS)
        assert lines[1].split("  ")[-1] == " 20,480 steps, 53 minutes with 7B on an H200".strip()
        assert "21 GiB" in lines[0]
    small = presets.apply_preset(vldac.Config(model="org/model", device="cuda"), "24gb")
    assert (small.num_envs * small.rollout_steps, small.micro_batch, small.lora.rank) == (256, 4, 16)

"""Presets: known, complete, and second to what is asked for."""

from __future__ import annotations

import sys
from contextlib import suppress

import pytest

from baselines import grpo, loop, rl4vlm, vldac
from baselines.learning import command
from baselines.learning import config as presets
from vlgym.errors import UserError

CONFIGS = {"vldac": vldac.Config, "rl4vlm": rl4vlm.Config, "loop": loop.Config, "grpo": grpo.Config}


def test_every_preset_suits_a_learner_and_its_values_are_in_range():
    for name in presets.PRESETS:
        suited = 0
        for config in CONFIGS.values():
            with suppress(UserError):  # a preset of another learner
                changed = presets.apply(config(), name)
                suited += 1
                assert changed.resolve().preset == name
        assert suited


def test_a_preset_sets_what_the_paper_says():
    config = presets.apply(vldac.Config(), "paper-miniworld")
    assert (config.lr, config.kl_coef, config.epochs) == (5e-5, 0.05, 2)
    assert (config.history_images, config.lora.rank) == (4, 16)
    assert config.num_envs * config.rollout_steps * config.updates == config.env_steps == 51_200


def test_options_beside_a_preset_win(monkeypatch):
    asked = {}
    words = ["vldac", "--preset", "paper-ezpoints", "--gamma", "0.5", "--lora.rank", "4"]
    monkeypatch.setattr(sys, "argv", words)
    command.main(vldac.Config, lambda config: asked.update(config=config), "")
    config = asked["config"]
    assert (config.preset, config.gamma) == ("paper-ezpoints", 0.5)
    assert (config.lora.rank, config.lora.alpha) == (4, 32.0)


def test_a_published_model_on_cuda_plays_many_short_rollouts(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)

    def sizes(*words):
        config = command.parse(vldac.Config, None, words)
        return config.num_envs, config.rollout_steps

    published = ("--model", "Qwen/Qwen2-VL-2B-Instruct")
    assert sizes(*published) == (128, 2)
    assert sizes(*published, "--num-envs", "8") == (8, 2)
    assert sizes(*published, "--preset", "24gb") == (16, 16)
    assert sizes(*published, "--device", "cpu") == sizes() == (32, 8)


def test_unknown_presets_and_those_of_other_learners_are_refused():
    with pytest.raises(UserError, match="paper-miniworld"):
        presets.apply(vldac.Config(), "paper-miniwrld")
    with pytest.raises(UserError, match="group, which this learner does not have"):
        presets.apply(vldac.Config(), "paper-loop")
    assert presets.chosen(loop.Config, ["--preset=paper-loop"]).group == 6
    assert presets.chosen(vldac.Config, ["--seed", "1"]) == vldac.Config()


def test_presets_are_listed_with_hardware_and_minutes(capsys):
    for words in (["--preset"], ["--seed", "1", "--preset", "list"]):
        with pytest.raises(SystemExit) as ended:
            command.parse(vldac.Config, None, words)
        assert ended.value.code == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines] == list(presets.PRESETS)
        assert lines[1].split("  ")[-1] == " 20,480 steps, 53 minutes with 7B on an H200".strip()
        assert "21 GiB" in lines[0]
    small = presets.apply(vldac.Config(model="org/model", device="cuda"), "24gb")
    assert (small.num_envs * small.rollout_steps, small.micro_batch, small.lora.rank) == (256, 4, 16)

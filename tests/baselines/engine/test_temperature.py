"""Training at another temperature than 1: sampling, scoring, gradients and the reference know one
distribution."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from samples import INSTRUCTIONS, messages, picture
from stage import SMALL

from baselines import vldac
from baselines.engine.engine import Engine
from baselines.learning.run import Run
from baselines.models.lora import LoraOptions
from baselines.plugin import make_hf
from baselines.runs.logs import read_rows
from vlgym.errors import UserError

TEMPERATURE, SYSTEM = 0.7, "You steer a robot. Be brief."


def one_token_log_probs(engine, prompt):
    """Log-probability of every token as a reply of one token, [V], -inf where it is never
    sampled."""
    allowed = [i for i in range(len(engine.suppress)) if engine.suppress[i] == 0]
    ids = torch.tensor(allowed).unsqueeze(1)
    logp = engine.score([prompt] * len(allowed), ids, torch.ones_like(ids, dtype=torch.bool))
    return torch.full((len(engine.suppress),), float("-inf")).index_put((torch.tensor(allowed),), logp[:, 0])


def test_scores_and_gradients_are_those_of_the_distribution_to_the_power_of_1_over_t(family, prompts):
    engine = Engine(family, max_new_tokens=10)
    prompt, token = prompts[0], family.encode_text("target")[0]
    weight = family.language_model.layers[0].mlp.up_proj.weight
    expected = torch.log_softmax(one_token_log_probs(engine, prompt) / TEMPERATURE, dim=-1)
    (by_hand,) = torch.autograd.grad(expected[token], weight)
    engine.temperature = TEMPERATURE
    found = engine.score([prompt], torch.tensor([[token]]), torch.ones(1, 1, dtype=torch.bool))[0, 0]
    (gradient,) = torch.autograd.grad(found, weight)
    torch.testing.assert_close(found, expected[token], atol=1e-5, rtol=0)
    torch.testing.assert_close(gradient, by_hand, atol=1e-4 * float(by_hand.abs().max()), rtol=1e-3)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in which the policy stays: its update is of the warm-up of the value head."""
    config = vldac.Config(**{**SMALL, "updates": 1, "eval_episodes": 0, "record_every": 0})
    config = replace(config, temperature=0.7, system=SYSTEM, lora=LoraOptions(rank=2), kl_coef=0.1, value_warmup=1)
    return vldac.train(replace(config, out=tmp_path_factory.mktemp("run") / "run"))


def test_a_run_samples_scores_and_refers_at_its_temperature_and_says_so(run):
    (row,) = read_rows(run.out / "log.jsonl")
    assert row["rollout/logp_diff_max"] < 1e-4
    engine = run.weights.engine
    prompt = engine.family.encode(messages(picture(1), "which way?"))
    ids = torch.tensor([engine.family.encode_reply("turn left")])
    mask = torch.ones_like(ids, dtype=torch.bool)
    with torch.no_grad():
        found = engine.score([prompt], ids, mask)
        torch.testing.assert_close(run.weights.reference.score([prompt], ids, mask), found, atol=1e-5, rtol=0)
        torch.testing.assert_close(run.weights.engine.score([prompt], ids, mask), found, atol=1e-5, rtol=0)
        with patch.object(engine, "temperature", 1.0):
            assert (engine.score([prompt], ids, mask) - found).abs().max() > 1e-2
    assert json.loads((run.out / "run.json").read_text())["policy"]["temperature"] == 0.7
    saved = str(run.out / "model")
    assert make_hf(saved).describe()["temperature"] == 0.7
    assert make_hf(saved, temperature=1.0).describe()["temperature"] == 1.0
    assert make_hf("tiny").describe()["temperature"] == 1.0


def test_a_temperature_that_is_none_is_refused():
    for value in (0.0, 101.0, math.nan):
        with pytest.raises(UserError, match="--temperature"):
            vldac.Config(temperature=value).resolve()


# ---- the system message --------------------------------------------------------------------------


def text_of(family, text="which way?"):
    return family.tokenizer.decode(family.encode(messages(picture(1), INSTRUCTIONS + text)).ids)


def test_training_and_all_that_comes_after_it_have_the_same_system_message(run, tmp_path):
    expected = text_of(run.weights.family)
    assert SYSTEM in expected
    record = json.loads((run.out / "run.json").read_text())
    assert (record["config"]["system"], record["policy"]["system"]) == (SYSTEM, SYSTEM)
    saved = make_hf(str(run.out / "model"))
    assert text_of(saved.engine.family) == expected
    assert saved.describe()["system"] == SYSTEM
    assert "system" not in make_hf("tiny").describe()
    again = Run(replace(vldac.Config(**SMALL), model=str(run.out / "model"), out=tmp_path / "next"))
    assert text_of(again.weights.family) == expected  # the next training inherits it
    again.__exit__(None, None, None)

"""Ends of replies, temperature, system message and limits: in training and all that comes after it."""

import json
import math
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from samples import Marks, messages, picture
from stage import SMALL

from baselines import vldac
from baselines.engine import engine
from baselines.engine.engine import Engine
from baselines.learning.run import Run
from baselines.learning.warm_start import WarmConfig
from baselines.models.folders import FILE, TrainedLimits, read_limits
from baselines.models.lora import LoraOptions
from baselines.plugin import make_hf
from baselines.runs.logs import read_rows
from vlgym.cli.app import main
from vlgym.errors import UserError
from vlgym.parsers import get_parser
from vlgym.play.trajectory import read_trajectories

SYSTEM = "You steer a robot. Be brief."
LIMIT = 21  # no multiple of CHECK
NO_WARM_START = replace(vldac.Config(**SMALL), warm=WarmConfig(steps=0))


def sample(family, prompts, *parsers):
    engine = Engine(family, max_new_tokens=LIMIT, parsers=parsers)
    return engine, engine.sample(prompts * 3, torch.Generator().manual_seed(5))


def test_a_reply_ends_with_the_token_that_completes_what_was_asked_for(family, prompts):
    _, whole = sample(family, prompts)
    rule = Marks("k")
    engine, out = sample(family, prompts, rule)
    over = 0
    for i, text in enumerate(whole.texts):
        ids = whole.ids[i][whole.mask[i]]
        n = next((n for n in range(1, len(ids) + 1) if rule.end(family.decode(ids[:n].tolist()))), len(ids))
        assert out.ids[i][out.mask[i]].tolist() == ids[:n].tolist()
        assert set(out.ids[i][~out.mask[i]].tolist()) <= {family.pad_id}
        torch.testing.assert_close(out.logp[i][out.mask[i]], whole.logp[i, :n], atol=1e-5, rtol=0)
        assert not out.logp[i][~out.mask[i]].any()
        assert out.texts[i] == family.decode(ids[:n].tolist())
        assert text.startswith(out.texts[i])
        assert bool(out.cut[i]) is (bool(whole.cut[i]) and rule.end(text) is None)
        over += n < len(ids)
    assert 3 <= over <= len(out.texts) - 3
    assert out.ids.shape[1] == int(out.mask.sum(-1).max())
    torch.testing.assert_close(engine.score(prompts * 3, out.ids, out.mask), out.logp, atol=1e-5, rtol=0)


def test_any_of_several_parsers_ends_a_reply(family, prompts):
    both = sample(family, prompts, Marks("a"), Marks("e"))[1]
    assert both.texts == sample(family, prompts, Marks("ae"))[1].texts
    assert both.texts != sample(family, prompts, Marks("a"))[1].texts


def test_a_file_with_something_else_is_refused(tmp_path):
    for text in ("{", "[]", '{"max_tokens": 3}', '{"max_new_tokens": "13"}'):
        (tmp_path / FILE).write_text(text)
        with pytest.raises(UserError, match="Delete"):
            read_limits(str(tmp_path))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in which the policy stays: its update is of the warm-up of the value head."""
    config = replace(
        NO_WARM_START, updates=1, eval_episodes=0, record_every=0, temperature=0.7, system=SYSTEM, parser="json",
        history_images=2, lora=LoraOptions(rank=2), kl_coef=0.1, value_warmup=1,
        out=tmp_path_factory.mktemp("run") / "run",
    )  # fmt: skip
    return vldac.train(config)


def system_of(family):
    return family.tokenizer.decode(family.encode(messages(picture(1), "which way?")).ids)


def test_a_run_samples_scores_and_refers_at_its_temperature_and_ends_replies_by_its_parser(run):
    (row,) = read_rows(run.out / "log.jsonl")
    assert row["rollout/logp_diff_max"] < 1e-4
    engine = run.weights.engine
    assert [each.name for each in engine.parsers] == ["json"]
    prompt = engine.family.encode(messages(picture(1), "which way?"))
    ids = torch.tensor([engine.family.encode_reply("turn left")])
    mask = torch.ones_like(ids, dtype=torch.bool)
    with torch.no_grad():
        scores = engine.score([prompt], ids, mask)
        torch.testing.assert_close(run.weights.reference.score([prompt], ids, mask), scores, atol=1e-5, rtol=0)
        with patch.object(engine, "temperature", 1.0):
            assert (engine.score([prompt], ids, mask) - scores).abs().max() > 1e-2


def test_what_comes_after_a_training_has_its_limits_temperature_and_system_message(run, tmp_path):
    saved, expected = str(run.out / "model"), system_of(run.weights.family)
    assert read_limits(saved) == TrainedLimits(12, 4, None, 2, "json", temperature=0.7, system=SYSTEM)
    record = json.loads((run.out / "run.json").read_text())
    assert (record["policy"]["temperature"], record["policy"]["system"]) == (0.7, SYSTEM)
    assert SYSTEM in expected
    policy = make_hf(saved)
    assert system_of(policy.engine.family) == expected
    assert policy.describe().items() >= {"temperature": 0.7, "system": SYSTEM}.items()
    assert make_hf(saved, temperature=1.0).describe()["temperature"] == 1.0
    tiny = make_hf("tiny").describe()
    assert (tiny["temperature"], "system" in tiny) == (1.0, False)
    with Run(replace(NO_WARM_START, model=saved, out=tmp_path / "next")) as again:
        assert system_of(again.weights.family) == expected  # the next training inherits it


def test_a_temperature_that_is_none_is_refused():
    for value in (0.0, 101.0, math.nan):
        with pytest.raises(UserError, match="--temperature"):
            vldac.Config(temperature=value).resolve()


def test_an_evaluation_takes_the_limits_of_the_training(tmp_path, monkeypatch):
    made = []

    class Noted(Engine):
        def sample(self, prompts, *args, stops=(), **kwargs):
            names = [name for name in ("tag", "json") if stops[0](get_parser(name).format(["+"]))]
            made.append((self.max_new_tokens, self.family.image_tokens, names))
            return super().sample(prompts, *args, stops=stops, **kwargs)

    with Run(replace(NO_WARM_START, out=tmp_path / "run", parser="json", max_new_tokens=7)) as run:
        run.save_model()
    monkeypatch.setattr(engine, "make_engine", Noted)
    words = ["eval", "--env", "vlgym/NumberLine-v0", "--episodes", "1", "--no-probe", "--policy-arg", "threads=1"]

    def play(model, *more):
        out = tmp_path / f"{len(made)}"
        assert main([*words, "--policy", f"hf:{model}", "--out", str(out), *more]) == 0
        return made[-1], [record.cut for episode in read_trajectories(out) for record in episode]

    limits, cuts = play(tmp_path / "run" / "model")
    assert limits == (7, 4, ["json"])
    assert sum(cuts) > 0.5 * len(cuts)  # a model that has learnt nothing goes on to the limit
    others = ("--max-tokens", "5", "--policy-arg", "image_tokens=9", "--parser", "tag")
    assert play(tmp_path / "run" / "model", *others)[0] == (5, 9, ["tag"])
    assert play("tiny", "--max-tokens", "5", "--policy-arg", "image_tokens=4")[0] == (5, 4, ["tag"])


def one_token_log_probs(engine, prompt):
    """Log-probability of every token as a whole reply, [V], -inf where it is never sampled."""
    ids = (engine.suppress == 0).nonzero()
    logp = engine.score([prompt] * len(ids), ids, torch.ones_like(ids, dtype=torch.bool))
    return torch.full((len(engine.suppress),), float("-inf")).index_put((ids[:, 0],), logp[:, 0])


def test_scores_and_gradients_are_those_of_the_distribution_to_the_power_of_1_over_t(family, prompts):
    engine = Engine(family, max_new_tokens=10)
    prompt, token = prompts[0], family.encode_text("target")[0]
    weight = family.language_model.layers[0].mlp.up_proj.weight
    expected = torch.log_softmax(one_token_log_probs(engine, prompt) / 0.7, dim=-1)
    (by_hand,) = torch.autograd.grad(expected[token], weight)
    engine.temperature = 0.7
    score = engine.score([prompt], torch.tensor([[token]]), torch.ones(1, 1, dtype=torch.bool))[0, 0]
    (gradient,) = torch.autograd.grad(score, weight)
    torch.testing.assert_close(score, expected[token], atol=1e-5, rtol=0)
    torch.testing.assert_close(gradient, by_hand, atol=1e-4 * float(by_hand.abs().max()), rtol=1e-3)

"""A reply is over when a parser has what it asked for: the sampler stops there, whatever the way of
decoding."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from samples import Marks
from stage import SMALL

from baselines import sft, vldac
from baselines.engine import engine
from baselines.engine.engine import Engine
from baselines.learning.run import Run
from baselines.learning.warm_start import WarmConfig
from baselines.models.folders import FILE, TrainedLimits, read_limits
from baselines.models.lora import LoraOptions
from vlgym.cli.app import main
from vlgym.errors import UserError
from vlgym.parsers import get_parser
from vlgym.play.trajectory import read_trajectories

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
    one = sample(family, prompts, Marks("ae"))[1]
    assert both.texts == one.texts
    assert both.texts != sample(family, prompts, Marks("a"))[1].texts


# -- the limits of a run, taken over by the evaluation --


def test_a_file_with_something_else_is_refused(tmp_path):
    for text in ("{", "[]", '{"max_tokens": 3}', '{"max_new_tokens": "13"}'):
        (tmp_path / FILE).write_text(text)
        with pytest.raises(UserError, match="Delete"):
            read_limits(str(tmp_path))


def test_a_run_stops_replies_by_its_parser_and_saves_its_limits_with_the_model(tmp_path):
    adapted = replace(NO_WARM_START, lora=LoraOptions(rank=2))
    with Run(replace(adapted, out=tmp_path / "run", history_images=2, parser="json")) as run:
        assert [each.name for each in run.weights.engine.parsers] == ["json"]
        run.save_model()
    assert read_limits(str(tmp_path / "run" / "model")) == TrainedLimits(12, 4, None, 2, "json", temperature=1.0)
    warm = WarmConfig(steps=1, samples=16, batch=4, val_episodes=1)
    config = sft.Config(out=tmp_path / "warm", image_tokens=4, env_kwargs=("parser=json",), threads=1, warm=warm)
    report = sft.run(config)
    assert read_limits(str(tmp_path / "warm")) == TrainedLimits(report.max_new_tokens, 4)
    assert report.longest_reply > 9  # tokens of the longest one with tags


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

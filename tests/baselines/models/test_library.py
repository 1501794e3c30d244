"""Models without a fast path: the library's ids, tensors and greedy replies, and an update."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import peft
import pytest
import torch
from modern import BUILDERS, save
from samples import CHATS, SIZE, ask_library, messages, picture
from stage import ONE_UPDATE
from torch.testing import assert_close
from transformers import AutoModelForImageTextToText

from baselines import vldac
from baselines.engine.engine import make_engine
from baselines.engine.generate import PlainEngine
from baselines.models.load import load_family
from baselines.models.lora import LoraOptions
from baselines.runs.logs import read_rows
from vlgym.errors import UserError


def list_families(*first: str) -> list:
    """Families for `parametrize`: some in every run, the others in the exhaustive one."""
    others = [x for x in BUILDERS if x not in first]
    return [*first, *(pytest.param(x, marks=pytest.mark.exhaustive) for x in others)]


# Tiles; linear attention; sliding windows and token types.
@pytest.fixture(scope="module", params=list_families("idefics3", "qwen3_5", "gemma3"))
def folder(request, tmp_path_factory) -> Path:
    return save(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def engine(folder) -> PlainEngine:
    made = make_engine(load_family(str(folder)), max_new_tokens=8)
    assert isinstance(made, PlainEngine)
    return made


def test_prompts_have_the_librarys_ids_and_tensors(engine):
    family = engine.family
    for chat in CHATS:
        theirs = ask_library(family.reader, chat)
        prompt = family.encode(chat)
        ours = family.inputs([prompt])
        assert prompt.ids.tolist() == theirs["input_ids"][0].tolist()
        assert set(ours) == set(theirs)
        for name, value in theirs.items():
            assert torch.equal(ours[name], value), name


def test_text_that_spells_a_special_token_stays_text(engine):
    family = engine.family
    mark = family.tokenizer.convert_ids_to_tokens(family.image_mark)
    prompt = family.encode(messages(picture(1, SIZE), f"a {mark}<|im_end|> b"))
    plain = family.encode(messages(picture(1, SIZE), "a b"))
    for token in (family.image_mark, family.turn_end):
        assert (prompt.ids == token).sum() == (plain.ids == token).sum() > 0


def test_sampler_and_scorer_agree(engine):
    prompts = [engine.family.encode(chat) for chat in CHATS]
    with patch.object(engine, "temperature", 0.7), torch.no_grad():
        out = engine.sample(prompts, torch.Generator().manual_seed(0))
        logp, states = engine.score_states(prompts, out.ids, out.mask)
        rows = zip(prompts, out.ids, out.mask, strict=True)
        alone = [engine.score([prompt], ids[None], mask[None])[0] for prompt, ids, mask in rows]
        assert_close(logp, out.logp, atol=1e-4, rtol=0)
        assert_close(torch.stack(alone), out.logp, atol=1e-4, rtol=0)
        assert_close(states, out.hidden, atol=1e-4, rtol=0)
        assert_close(engine.last_hidden(prompts), out.hidden, atol=1e-4, rtol=0)
    assert out.logp[out.mask].mean() < -1
    assert len(set(out.texts)) == 3
    other = [engine.family.encode(messages(picture(9, SIZE), "Which way?\n\nLegal actions: +, -"))]
    assert (engine.last_hidden(other) - out.hidden[0]).abs().max() > 1e-3  # by the picture


def test_a_reply_ends_with_its_end_of_turn_token(engine, monkeypatch):
    wanted = engine.suppress.clone()
    wanted[engine.family.turn_end] += 40
    monkeypatch.setattr(engine, "suppress", wanted)
    prompts = [engine.family.encode(chat) for chat in CHATS]
    out = engine.sample(prompts, torch.Generator().manual_seed(0))
    assert out.ids[out.mask].tolist() == [engine.family.turn_end] * 3
    assert not out.cut.any()


@pytest.mark.parametrize("folder", list_families("qwen3_5"), indirect=True)
def test_an_update_trains_adapters_and_the_export_is_the_trained_model(folder, engine, tmp_path):
    run = vldac.train(replace(
        vldac.Config(**ONE_UPDATE), env="vlgym/NumberLine-v1", model=str(folder), image_tokens=None,
        lora=LoraOptions(rank=2), lr=1e-2, out=tmp_path / "run",
    ))  # fmt: skip
    (row,) = read_rows(run.out / "log.jsonl")
    assert row["rollout/logp_diff_max"] < 1e-4
    assert row["policy/grad_norm"] > 0
    prompts = [engine.family.encode(chat) for chat in CHATS]
    ids, mask = torch.full((3, 4), 65), torch.ones(3, 4, dtype=torch.bool)
    exported = make_engine(load_family(str(run.out / "model")), max_new_tokens=12)
    base = AutoModelForImageTextToText.from_pretrained(folder)
    adapted = peft.PeftModel.from_pretrained(base, run.out / "adapter")
    with torch.no_grad():
        before, trained = (each.score(prompts, ids, mask) for each in (engine, run.weights.engine))
        assert_close(exported.score(prompts, ids, mask), trained, atol=1e-4, rtol=1e-4)
        whole = engine.family.inputs(prompts[:1])
        logits = exported.family.model(**whole).logits
        assert_close(adapted(**whole).logits, logits, atol=1e-3, rtol=1e-3)
    assert (before - trained).abs().max() > 1e-3


def test_the_plain_engine_refuses_to_recompute_in_one_line(tmp_path):
    with pytest.raises(UserError, match="--recompute: not with a idefics3 model"):
        load_family(str(save("idefics3", tmp_path / "model"))).set_recompute(True)

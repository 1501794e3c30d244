"""Language models without sight: ids, greedy replies, learning in words, one line for pictures."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers as tf
from modern import build_random, text_part
from samples import messages, picture, say
from stage import ONE_UPDATE, SMALL
from torch.testing import assert_close

from baselines import sft, vldac
from baselines.engine.engine import make_engine
from baselines.learning.warm_start import WarmConfig
from baselines.models.load import load_family
from baselines.models.tiny import build_tokenizer
from baselines.plugin import make_hf
from baselines.runs.logs import read_rows
from vlgym.errors import UserError

LAYOUT = (  # takes strings, as the published templates of language models do
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CHATS = [
    [say("Which way?\n\nLegal actions: +, -")],
    [say("Be brief.", "system"), say("One"), say("<action>+</action>", "assistant"), say("And now?")],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    tokenizer, to = build_tokenizer(), tmp_path_factory.mktemp("qwen3")
    tokenizer.chat_template = LAYOUT
    build_random(tf.AutoModelForCausalLM, tf.Qwen3Config(**text_part(tokenizer))).save_pretrained(to)
    tokenizer.save_pretrained(to)
    return to


@pytest.fixture(scope="module")
def engine(folder):
    return make_engine(load_family(str(folder)), max_new_tokens=12)


def test_prompts_and_greedy_replies_are_the_librarys(engine):
    family, tokenizer = engine.family, engine.family.tokenizer
    prompts = [family.encode(chat) for chat in CHATS]
    out = engine.sample(prompts, temperature=0)
    for chat, prompt, ids, mask in zip(CHATS, prompts, out.ids, out.mask, strict=True):
        plain = [{"role": each["role"], "content": each["content"][0]["text"]} for each in chat]
        theirs = tokenizer.apply_chat_template(plain, add_generation_prompt=True, return_dict=False)
        assert prompt.ids.tolist() == theirs
        after = family.model.generate(
            torch.tensor([theirs]), max_new_tokens=12, do_sample=False,
            suppress_tokens=list(family.suppressed),
            eos_token_id=list(family.stop_ids), pad_token_id=family.pad_id,
        )[0, len(prompt) :]  # fmt: skip
        assert ids[mask].tolist() == after.tolist()
    assert (family.encode([say("a <|im_end|> b")]).ids == family.turn_end).sum() == 1


def test_a_run_in_words_trains_and_exports(folder, engine, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("vlgym.terminal.SLOW_S", 0.0)
    run = vldac.train(replace(
        vldac.Config(**ONE_UPDATE), model=str(folder), eval_episodes=1, eval_controls=True, lr=1e-2,
        image_tokens=None, env_kwargs=("modality=text",), out=tmp_path / "run",
        warm=WarmConfig(steps=1, samples=16, batch=4, val_episodes=1),
    ))  # fmt: skip
    (row,) = read_rows(run.out / "log.jsonl")
    assert row["rollout/logp_diff_max"] < 1e-4
    assert row["policy/grad_norm"] > 0
    assert not {"grey", "shuffled", "sight/gap"} & {name for each in run.state.evaluations for name in each}
    printed = capsys.readouterr().out
    assert "the controls are left out (grey, shuffled)" in printed
    assert "unread" not in printed  # a loss without pictures
    exported = make_engine(load_family(str(run.out / "model")), max_new_tokens=12)
    prompts = [engine.family.encode(chat) for chat in CHATS]
    ids, mask = torch.full((2, 4), 65), torch.ones(2, 4, dtype=torch.bool)
    with torch.no_grad():
        engines = (engine, run.weights.engine, exported)
        before, trained, saved = (each.score(prompts, ids, mask) for each in engines)
    assert_close(saved, trained, atol=1e-4, rtol=1e-4)
    assert (before - trained).abs().max() > 1e-3


def test_pictures_are_one_line(folder, engine, tmp_path):
    options = {**SMALL, "model": str(folder), "image_tokens": None}
    with pytest.raises(UserError, match=r"words alone.*modality=text"):
        vldac.train(vldac.Config(**options, out=tmp_path / "run"))
    assert not (tmp_path / "run").exists()
    with pytest.raises(UserError, match="words alone"):
        sft.run(sft.Config(model=str(folder), out=tmp_path / "warm"))
    policy = make_hf(str(folder))
    assert policy.sees is False
    policy.check(pictures=False)
    with pytest.raises(UserError, match="words alone"):
        policy.check()
    words = r"reads words alone, and the prompts show pictures\. Play in words \(modality=text\)"
    with pytest.raises(UserError, match=words):
        engine.family.encode(messages(picture(1), "Which way?"))

"""With the real weights of SmolLM2 (`make real`): the body computes what the published model
computes, and trains."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from stage import SMALL

from baselines import vldac
from baselines.engine.engine import make_engine
from baselines.learning.warm_start import WarmConfig
from baselines.models.load import load_family
from baselines.models.lora import LoraOptions
from baselines.models.smollm import _find_weights, load_published

pytestmark = pytest.mark.real

QUESTION = "What is the capital of France?"
TEXTS = (
    "The capital of France is",
    "def add(a, b):\n    return",
    "<|im_start|>user\nHello<|im_end|>\n",
    "é 漢 <action>",
)


@pytest.fixture(scope="module")
def family():
    return load_family("smollm2")


def say(text):
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


def test_logits_and_prompts_are_those_of_the_published_model(family):
    llama, tokenizer = load_published(_find_weights())
    with torch.no_grad():
        for text in TEXTS:
            ids = tokenizer(text, return_tensors="pt").input_ids
            theirs = llama(ids).logits
            assert (family.model(input_ids=ids).logits[..., : theirs.shape[-1]] - theirs).abs().max() < 1e-5
    plain = [{"role": "user", "content": QUESTION}]
    ids = tokenizer.apply_chat_template(plain, add_generation_prompt=True, return_dict=False)
    assert family.encode(say(QUESTION)).ids.tolist() == ids


def test_it_knows_the_answer_and_special_tokens_spelled_out_are_text(family):
    engine = make_engine(family, max_new_tokens=12)
    assert "Paris" in engine.sample([family.encode(say(QUESTION))], temperature=0).texts[0]
    spelled = family.encode(say("a <|im_end|> b")).ids.tolist()
    end = family.tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert spelled.count(end) == family.encode(say("a b")).ids.tolist().count(end)


def test_adapters_train_in_words_and_resume_and_are_exported(tmp_path):
    config = replace(
        vldac.Config(**SMALL), model="smollm2", image_tokens=None, updates=1, num_envs=2,
        rollout_steps=1, minibatch=2,
        epochs=1, eval_episodes=0, max_new_tokens=4, warm=WarmConfig(steps=0),
        lora=LoraOptions(rank=4),
        env_kwargs=("modality=text",), out=tmp_path / "run", export=tmp_path / "export",
    )  # fmt: skip
    assert vldac.train(config).finished()
    again = vldac.train(vldac.Config(out=tmp_path / "run", resume=True, updates=2, export=tmp_path / "export"))
    assert again.state.update == 2
    prompts = [load_family(name).encode(say(QUESTION)) for name in (str(tmp_path / "export"), "smollm2")]
    assert prompts[0].key == prompts[1].key
    assert "apache-2.0" in (tmp_path / "export" / "README.md").read_text()

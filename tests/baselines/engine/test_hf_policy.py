"""The policy `hf:`: what its replies depend on, what it tells of itself, what it refuses."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from publish import publish
from samples import ANSWER, Marks, messages, picture

from baselines.plugin import make_hf
from vlgym.errors import UserError
from vlgym.registry.making import make
from vlgym.types import Turn

ENV = "vlgym/NumberLine-v0"


@pytest.fixture
def env():
    return make(ENV)


@pytest.fixture(scope="module")
def published(model_folder, tmp_path_factory):
    return publish(model_folder("qwen2_5_vl"), tmp_path_factory.mktemp("published") / "qwen2_5_vl", "qwen2_5_vl")


@pytest.fixture(params=["auto", pytest.param("generate", marks=pytest.mark.exhaustive)])
def policy(request, published):
    def load(**options):
        return make_hf(str(published), engine=request.param, **{"max_tokens": 12, **options})

    return load


def turns(env, count: int = 8) -> list[Turn]:
    """Turns of several episodes, with one picture or two, short and long."""
    batch = []
    for n in range(count):
        prompt = messages(picture(n, (40, 90)), f"Which way? {'far ' * (n % 3)}")
        if n % 4 == 3:
            prompt = [*prompt, ANSWER, *messages(picture(n + 1, (40, 90)), "And now?")]
        batch.append(Turn(prompt, env, ENV, seed=n // 2, turn=n % 2))
    return batch


def texts(policy, batch) -> list[str]:
    return [reply.text for reply in policy.reply(batch)]


def test_a_reply_does_not_depend_on_who_else_is_in_the_batch(policy, env):
    whole, batch = policy(seed=3), turns(env)
    together = texts(whole, batch)
    assert [texts(whole, [turn])[0] for turn in batch] == together
    assert texts(whole, batch[::-1]) == together[::-1]
    assert len(set(together)) == len(batch)


def test_another_episode_turn_repeat_or_environment_is_another_draw(policy, env):
    drawn, turn = policy(), turns(env, 1)[0]
    assert texts(drawn, [turn]) == texts(drawn, [turn])
    for change in ({"seed": 9}, {"turn": 5}, {"repeat": 1}, {"env_id": "vlgym/EZPoints-v0"}):
        assert texts(drawn, [turn]) != texts(drawn, [replace(turn, **change)])


def test_another_seed_is_another_draw_and_a_temperature_of_0_draws_nothing(policy, env):
    batch = turns(env, 2)
    assert texts(policy(seed=1), batch) != texts(policy(seed=2), batch)
    greedy = texts(policy(seed=1, temperature=0), batch)
    assert greedy == texts(policy(seed=2, temperature=0), batch)
    assert greedy == texts(policy(seed=1, temperature=0.0005), batch)
    assert greedy != texts(policy(seed=1), batch)


def test_each_reply_ends_by_the_parser_of_its_own_environment(policy, env):
    other = make("vlgym/EZPoints-v0")
    env.parser, other.parser = Marks("e"), Marks("a")
    free = make(ENV)
    batch = turns(env, 6)
    mixed = [replace(turn, env=(env, other, free)[n % 3]) for n, turn in enumerate(batch)]
    drawn = policy(max_tokens=40)
    plain = drawn.reply([replace(turn, env=free) for turn in batch])
    over = 0
    for n, (reply, whole) in enumerate(zip(drawn.reply(mixed), plain, strict=True)):
        end = mixed[n].env.parser.end(whole.text)
        if end is None or n % 3 == 2:
            assert (reply.text, reply.cut) == (whole.text, whole.cut)
            continue
        assert whole.text.startswith(reply.text)
        assert mixed[n].env.parser.end(reply.text[: end - 1]) is None  # not a token too much
        assert mixed[n].env.parser.end(reply.text) == end
        assert not reply.cut
        assert reply.usage.completion_tokens < whole.usage.completion_tokens
        over += 1
    assert over >= 2


def test_a_checkpoints_generation_config_truncates_nothing(published, env, tmp_path):
    folder = shutil.copytree(published, tmp_path / "narrow")
    config = json.loads((folder / "generation_config.json").read_text())
    config |= {"do_sample": True, "top_k": 1, "top_p": 0.1, "temperature": 0.01, "repetition_penalty": 1.9}
    config |= {"no_repeat_ngram_size": 1, "min_new_tokens": 12}
    (folder / "generation_config.json").write_text(json.dumps(config))
    batch = turns(env, 4)
    plain, narrow = (make_hf(str(each), engine="generate", max_tokens=12) for each in (published, folder))
    assert texts(narrow, batch) == texts(plain, batch)


def test_a_record_says_which_model_played_and_how(published, tmp_path):
    import transformers

    folder = shutil.copytree(published, tmp_path / "model")
    first = make_hf(str(folder), seed=4, temperature=0.7).describe()
    assert first == {
        "name": f"hf:{folder}", "model": first["model"], "engine": "engine", "dtype": "float32",
        "device": "cpu", "image_tokens": 1280, "image_pixels": [3136, 1003520],
        "max_new_tokens": 128, "temperature": 0.7, "seed": 4, "torch": first["torch"],
        "transformers": transformers.__version__,
    }  # fmt: skip
    assert first["torch"].startswith(torch.__version__.split("+")[0])
    (folder / "README.md").write_text("A model.")
    assert make_hf(str(folder)).describe()["model"] == first["model"]
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    changed = make_hf(str(folder), engine="generate", dtype="bfloat16").describe()
    assert changed["model"] != first["model"]
    assert (changed["engine"], changed["dtype"]) == ("generate", "bfloat16")
    tiny = [make_hf("tiny", seed=seed).describe()["model"] for seed in (0, 0, 1)]
    assert tiny[0] == tiny[1] != tiny[2]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("", {}, r"hf: names no model\. Choose tiny"),
        ("no/where/at-all", {}, r"^hf:no/where/at-all: no such model\. There is no such folder"),
        ("tiny", {"temperature": -1.0}, r"--temperature -1.0 must be >= 0.0"),
        ("tiny", {"engine": "vllm"}, r"--policy-arg engine='vllm' is not one of auto, generate"),
        ("tiny", {"engine": "generate"}, r"hf:tiny is built here"),
        ("tiny", {"dtype": "int8"}, r"--policy-arg dtype='int8' is not one of float32, bfloat16"),
        ("tiny", {"device": "gpu"}, r"^--policy-arg device='gpu' is not one of auto, cpu, mps, cuda"),
    ],
)
def test_what_cannot_be_is_one_line_in_the_words_of_the_command(name, options, words):
    with pytest.raises(UserError, match=words) as error:
        make_hf(name, **options)
    assert "\n" not in str(error.value)


def test_what_is_no_chat_model_for_images_is_one_line(published, tmp_path, monkeypatch):
    without = shutil.copytree(published, tmp_path / "without")
    (without / "chat_template.jinja").unlink()
    with pytest.raises(UserError, match=r"has no chat template, .* Choose its instruct version"):
        make_hf(str(without), engine="generate")
    (without / "preprocessor_config.json").unlink()
    with pytest.raises(UserError, match="its processor cannot be loaded"):
        make_hf(str(without), engine="generate")
    with pytest.raises(UserError, match=r"image_tokens 9: the images of a qwen2_5_vl model are sized by its"):
        make_hf(str(published), engine="generate", image_tokens=9)
    monkeypatch.setattr(
        "transformers.AutoImageProcessor.from_pretrained",
        lambda *args, **options: (_ for _ in ()).throw(ImportError("\nX requires the Torchvision library but.\nMore")),
    )
    with pytest.raises(UserError, match=r"X requires the Torchvision library but\. pip install torchvision$"):
        make_hf(str(published), engine="generate")

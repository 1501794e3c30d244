"""TRL: SFTTrainer takes what `vlgym export --to sft` writes, and GRPOTrainer plays environments."""

from pathlib import Path

import numpy as np
import pytest
import torch

from vlgym.cli.app import main
from vlgym.env.prompts import PromptBuilder
from vlgym.integrations.trl import ActionParser, make_factory, make_rows
from vlgym.play.policies import OraclePolicy
from vlgym.play.rollout import Runner, run_episodes
from vlgym.play.trajectory import TrajectoryWriter, describe_run, read_trajectories
from vlgym.registry.making import make

STEPS, BATCH = 2, 3


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], list[int]]:
    """The folder of a data set, the replies in it, and how many pictures each prompt has."""
    folder = tmp_path_factory.mktemp("trl")
    env, builder = make("vlgym/NumberLine-v1"), PromptBuilder(history_turns=1, history_images=2)
    writer = TrajectoryWriter(folder / "run", describe_run([env], builder=builder))
    for episode in run_episodes(Runner([env], episodes=3, builder=builder), OraclePolicy()):
        writer.write(episode)
    assert main(["export", str(folder / "run"), "--to", "sft", "--out", str(folder / "chats")]) == 0
    turns = [turn for each in read_trajectories(folder / "run", images=False) for turn in each]
    parts = [[part["type"] for m in turn.messages for part in m["content"]] for turn in turns]
    return folder / "chats", [turn.reply for turn in turns], [each.count("image") for each in parts]


def test_sft_trainer_learns_the_replies_and_sees_every_picture(chats, model, tmp_path):
    from datasets import load_dataset
    from transformers import AutoModelForImageTextToText, AutoProcessor
    from trl import SFTConfig, SFTTrainer

    folder, replies, pictures = chats
    assert set(pictures) == {1, 2}
    data = load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    weights = AutoModelForImageTextToText.from_pretrained(model)
    before = {name: tensor.clone() for name, tensor in weights.state_dict().items()}
    trainer = SFTTrainer(
        weights,
        args=SFTConfig(
            str(tmp_path / "out"), max_steps=STEPS, per_device_train_batch_size=BATCH, use_cpu=True,
            bf16=False, report_to=[], max_length=None, learning_rate=1e-3, save_strategy="no",
            shuffle_dataset=False,
        ),
        train_dataset=data, processing_class=AutoProcessor.from_pretrained(model),
    )  # fmt: skip
    batch = trainer.data_collator([data[index] for index in range(len(data))])
    tokenizer = trainer.processing_class.tokenizer
    learnt = [tokenizer.decode(row[row != -100], skip_special_tokens=True).strip() for row in batch["labels"]]
    assert learnt == replies
    assert len(batch["image_grid_thw"]) == sum(pictures)
    done = trainer.train()
    assert done.global_step == STEPS
    assert np.isfinite(done.training_loss)
    assert not all(torch.equal(before[name], x) for name, x in weights.state_dict().items())


CALL = '<tool_call>\n{{"name": "act", "arguments": {{"reply": "{}"}}}}\n</tool_call><|im_end|>'


@pytest.mark.parametrize("env_id", ["vlgym/NumberLine-v1", "vlgym/OneRoom-v0"])
def test_grpo_steps_on_episodes_that_are_gymnasiums(env_id, tmp_path, monkeypatch):
    """A model from scratch calls no tool, so what it says is replaced; all else is TRL's: tools,
    pictures, rewards, advantages, a step of the weights."""
    import trl
    from datasets import Dataset
    from publish import publish
    from tiny_families import build
    from transformers import AutoModelForImageTextToText, AutoProcessor

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    for part in build("qwen3_vl"):
        part.save_pretrained(tmp_path / "raw")
    folder = publish(tmp_path / "raw", tmp_path / "model", "qwen3_vl")
    template = Path(trl.__file__).parent / "chat_templates" / "qwen3_vl.jinja"
    (folder / "chat_template.jinja").write_text(template.read_text())
    weights = AutoModelForImageTextToText.from_pretrained(folder)
    before = {name: tensor.clone() for name, tensor in weights.state_dict().items()}
    trainer = trl.GRPOTrainer(
        weights,
        args=trl.GRPOConfig(
            str(tmp_path / "out"), max_steps=1, per_device_train_batch_size=4, num_generations=2,
            use_cpu=True, bf16=False, report_to=[], max_completion_length=900, learning_rate=1e-3,
            save_strategy="no", max_tool_calling_iterations=3,
        ),
        train_dataset=Dataset.from_list(make_rows(env_id, 2)),
        processing_class=AutoProcessor.from_pretrained(folder),
        environment_factory=make_factory(env_id, image_size=(64, 96)),
    )  # fmt: skip
    probe = make(env_id)
    probe.reset(seed=0)
    actions, batches, pictures = probe.legal_actions(), [], []

    def speak(prompts, images, *others, **options):
        pictures.append([len(each) for each in images])
        words = [actions[(len(batches) + index) % len(actions)] for index in range(len(prompts))]
        batches.append(words)
        return [trainer.processing_class.tokenizer(CALL.format(word))["input_ids"] for word in words], None

    monkeypatch.setattr(trainer, "_generate_single_turn", speak)
    trainer.train()
    assert pictures[0] == [1] * 4  # the first observation
    assert pictures[1] == [2] * 4  # and what the first reply led to
    for index, game in enumerate(trainer.environments):
        assert game.replies
        env = make(env_id, image_size=(64, 96), parser=ActionParser())
        env.reset(seed=game.seed)
        assert game.get_reward() == sum(env.step(reply)[1] for reply in game.replies)
        assert game.replies[0] == batches[0][index]
    seeds = [game.seed for game in trainer.environments]
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]  # a group plays one episode
    one, two, three, four = (game.get_reward() for game in trainer.environments)
    differ = one != two or three != four
    assert differ or env_id == "vlgym/OneRoom-v0"  # three turns do not reach the box
    assert all(torch.equal(before[name], x) for name, x in weights.state_dict().items()) != differ


def test_the_snippet_of_the_docs_runs_on_the_demos_model(tmp_path, monkeypatch):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from baselines.models.load import load_family
    from baselines.models.lora import export_merged
    from vlgym.integrations.trl import log_episodes

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    env_id = "vlgym/NumberLine-v1"
    trainer = GRPOTrainer(
        str(export_merged(load_family("tiny"), tmp_path / "model")),
        args=GRPOConfig(
            str(tmp_path / "out"), num_generations=2, max_completion_length=1500,
            max_tool_calling_iterations=2, max_steps=1, per_device_train_batch_size=2, use_cpu=True,
            bf16=False, report_to=[], save_strategy="no",
        ),
        train_dataset=Dataset.from_list(make_rows(env_id, 2)),
        environment_factory=make_factory(env_id), reward_funcs=log_episodes,
    )  # fmt: skip
    spoken = []

    def speak(prompts, images, *others, **options):
        spoken.append([len(each) for each in images])
        return [trainer.processing_class.tokenizer(CALL.format("+"))["input_ids"] for _ in prompts], None

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "_generate_single_turn", speak)
        trainer.train()
    assert spoken[:2] == [[1, 1], [2, 2]]
    assert all(game.replies[0] == "+" for game in trainer.environments)

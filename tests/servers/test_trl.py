"""TRL's SFTTrainer takes what `vlgym export --to sft` writes, and learns the replies alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from vlgym.cli.app import main
from vlgym.making import make
from vlgym.policies import OraclePolicy
from vlgym.prompts import PromptBuilder
from vlgym.rollout import Runner, run_episodes
from vlgym.trajectory import TrajectoryWriter, describe_run, read_trajectories

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
    turns = [turn for episode in read_trajectories(folder / "run", images=False) for turn in episode]
    pictures = [sum(part["type"] == "image" for m in turn.messages for part in m["content"]) for turn in turns]
    return folder / "chats", [turn.reply for turn in turns], pictures


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
            str(tmp_path / "out"), max_steps=STEPS, per_device_train_batch_size=BATCH, use_cpu=True, bf16=False,
            report_to=[], max_length=None, learning_rate=1e-3, save_strategy="no", shuffle_dataset=False,
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
    assert any(not torch.equal(before[name], tensor) for name, tensor in weights.state_dict().items())

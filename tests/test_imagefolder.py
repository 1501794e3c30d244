"""A trajectory folder is a data set that Hugging Face's `datasets` reads as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vlgym.making import make
from vlgym.policies import OraclePolicy
from vlgym.rollout import Runner, run_episodes
from vlgym.trajectory import TrajectoryWriter, describe_run


def test_load_dataset_imagefolder_reads_images_and_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset

    env = make("vlgym/NumberLine-v0")
    writer = TrajectoryWriter(tmp_path / "run", describe_run([env]))
    records = []
    for episode in run_episodes(Runner([env], episodes=3), OraclePolicy()):
        writer.write(episode)
        records += episode
    data = load_dataset("imagefolder", data_dir=str(tmp_path / "run"), split="train", cache_dir=str(tmp_path / "cache"))
    assert data["reply"] == [record.reply for record in records]
    assert data["reward"] == [record.reward for record in records]
    for row, record in zip(data, records, strict=True):
        assert np.array_equal(np.asarray(row["image"]), record.image)

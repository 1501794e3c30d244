"""A trajectory folder is a data set that Hugging Face's `datasets` reads as it is."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from vlgym.play.policies import OraclePolicy
from vlgym.play.rollout import Runner, run_episodes
from vlgym.play.trajectory import TrajectoryWriter, describe_run
from vlgym.registry.making import make
from vlgym.types import Reply, Turn, Usage


class Telling(OraclePolicy):
    """Says of every second reply what it took."""

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        usage = Usage(100, 5, 0.25, 2)
        return [
            Reply(each.text, cut=turn.turn == 1, usage=usage if turn.turn % 2 else None)
            for each, turn in zip(super().reply(turns), turns, strict=True)
        ]


def test_load_dataset_reads_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset

    env = make("vlgym/NumberLine-v0")
    writer = TrajectoryWriter(tmp_path / "run", describe_run([env]))
    records = []
    for episode in run_episodes(Runner([env], episodes=6, repeats=2, part="p"), Telling()):
        writer.write(episode)
        records += episode
    folder, cache = str(tmp_path / "run"), str(tmp_path / "cache")
    data = load_dataset("imagefolder", data_dir=folder, split="train", cache_dir=cache)
    for name in ("reply", "reward", "part", "repeat"):
        assert data[name] == [getattr(record, name) for record in records], name
    assert len(list((tmp_path / "run" / "images").iterdir())) < len(records)  # equal ones are stored once
    assert data["span"] == [list(record.span) for record in records if record.span]
    assert data["usage"] == [record.usage and asdict(record.usage) for record in records]
    assert None in data["usage"]
    assert {"cut", "refused", "prompt"} <= set(data.column_names)
    for row, record in zip(data, records, strict=True):
        assert np.array_equal(np.asarray(row["image"]), record.image)

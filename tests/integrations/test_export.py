"""`vlgym export`: data sets that other libraries load, with the records and nothing else."""

import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlgym.cli.app import main
from vlgym.env.prompts import PromptBuilder
from vlgym.errors import FailedError, NotInstalledError, TrajectoryError
from vlgym.integrations import parquet
from vlgym.integrations.minari import write_minari
from vlgym.play.policies import OraclePolicy, RandomPolicy
from vlgym.play.rollout import Runner, run_episodes
from vlgym.play.trajectory import TrajectoryWriter, describe_run, read_header, read_trajectories
from vlgym.registry.making import make
from vlgym.types import Reply, StepRecord

ENV = "vlgym/NumberLine-v1"


class Writer(RandomPolicy):
    """Plays at random, and writes what `write` makes of a turn and its reply."""

    def __init__(self, write):
        super().__init__()
        self.write = write

    def reply(self, turns):
        return [Reply(self.write(turn, reply.text)) for turn, reply in zip(turns, super().reply(turns), strict=True)]


SLOPPY = Writer(lambda turn, text: "<action>sideways</action>" if turn.turn % 3 == 2 else text)
CUT = Writer(lambda turn, text: f"\ud800{text}")  # half of a surrogate pair
SILENT = Writer(lambda turn, text: "")


def record(folder: Path, policy=SLOPPY, episodes: int = 3, **kwargs) -> list[list[StepRecord]]:
    env, builder = make(ENV, **kwargs), PromptBuilder(history_turns=2, history_images=3)
    writer = TrajectoryWriter(folder, describe_run([env], builder=builder))
    played = list(run_episodes(Runner([env], episodes=episodes, builder=builder), policy))
    for episode in played:
        writer.write(episode)
    return played


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records") / "run"
    return folder, record(folder)


def load(folder: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset

    return load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))


def parts_of(messages, kind: str) -> list:
    """The texts or images of a prompt."""
    return [part.get(kind) for each in messages for part in each["content"] if part["type"] == kind]


def export(folder: Path, to: str, out: Path, *more: str) -> int:
    return main(["export", str(folder), "--to", to, "--out", str(out), *more])


def test_every_turn_is_a_row_with_all_its_pictures(run, tmp_path, monkeypatch, capsys):
    folder, episodes = run
    monkeypatch.setattr(parquet, "SHARD", 20)
    monkeypatch.setattr(parquet, "ROW_GROUP", 7)
    assert export(folder, "hf", tmp_path / "hf") == 0
    assert f"{sum(map(len, episodes))} turns of 3 episodes" in capsys.readouterr().out
    records = [record for episode in episodes for record in episode]
    assert len(list((tmp_path / "hf" / "data").iterdir())) == -(-len(records) // 20) > 1
    data = load(tmp_path / "hf", tmp_path, monkeypatch)
    assert len(data) == len(records)
    assert max(len(row["images"]) for row in data) == 3
    for row, turn in zip(data, records, strict=True):
        for name in (*parquet.COLUMN_TYPES, "success", "score"):
            assert row[name] == getattr(turn, name), name
        assert row["actions"] == list(turn.actions)
        images = parts_of(turn.messages, "image")
        assert all(map(np.array_equal, row["images"], images))
        prompt = json.loads(row["prompt"])
        assert [each["role"] for each in prompt] == [each["role"] for each in turn.messages]
        assert len(parts_of(prompt, "image")) == len(row["images"]) == len(images)


def test_a_chat_ends_with_the_reply_and_invalid_ones_are_left_out(run, tmp_path, monkeypatch):
    folder, episodes = run
    assert export(folder, "sft", tmp_path / "sft") == 0
    valid = [record for episode in episodes for record in episode if not record.invalid]
    assert 0 < len(valid) < sum(map(len, episodes))
    data = load(tmp_path / "sft", tmp_path, monkeypatch)
    assert data.column_names == ["prompt", "completion", "images"]
    for row, turn in zip(data, valid, strict=True):
        content = [{"type": "text", "text": turn.reply}]
        assert row["completion"] == [{"role": "assistant", "content": content}]
        assert parts_of(row["prompt"], "text") == parts_of(turn.messages, "text")
        marks, images = (parts_of(each, "image") for each in (row["prompt"], turn.messages))
        assert len(marks) == len(row["images"]) == len(images)
        assert np.array_equal(row["images"][-1], turn.image)


def test_minari_has_the_turns_and_the_observation_after_the_last(run, tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    folder, episodes = run
    monkeypatch.setattr("vlgym.integrations.minari.CHUNK", 2)
    monkeypatch.chdir(tmp_path)
    assert export(folder, "minari", Path("minari")) == 0
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    data = minari.load_dataset("vlgym/records-v0")
    assert (data.total_episodes, data.total_steps) == (3, sum(map(len, episodes)))
    for entry, episode in zip(data.iterate_episodes(), episodes, strict=True):
        assert list(entry.actions) == [record.reply for record in episode]
        assert list(entry.rewards) == [record.reward for record in episode]
        assert list(entry.terminations) == [record.terminated for record in episode]
        assert list(entry.truncations) == [record.truncated for record in episode]
        assert list(entry.observations["text"][:-1]) == [record.text for record in episode]
        assert len(entry.observations["image"]) == len(episode) + 1
        assert all(map(np.array_equal, entry.observations["image"], [turn.image for turn in episode]))
        env = make(ENV)
        env.reset(seed=episode[0].seed)
        for turn in episode:
            last = env.step(turn.reply)[0]
        assert np.array_equal(entry.observations["image"][-1], last["image"])
    assert data.recover_environment().unwrapped.arguments == make(ENV).arguments


def test_minari_refuses_what_does_not_happen_again_and_two_environments(run, tmp_path):
    pytest.importorskip("minari")
    folder, _ = run
    episodes = list(read_trajectories(folder, images=False))
    episodes[1][0].reward += 1
    (tmp_path / "out").mkdir()
    with pytest.raises(FailedError, match=r"episode 1, turn 0: reward is .* as recorded"):
        write_minari([(folder, episode) for episode in episodes], tmp_path / "out")
    other = tmp_path / "other"
    record(other, max_turns=7)
    mixed = [(place, episode) for place in (folder, other) for episode in read_trajectories(place, images=False)]
    with pytest.raises(TrajectoryError, match="or with other arguments"):
        write_minari(mixed, tmp_path / "out")


@pytest.mark.parametrize("to", ["hf", "minari"])
def test_half_a_surrogate_pair_is_written_as_a_question_mark(tmp_path, monkeypatch, to):
    record(tmp_path / "run", CUT, episodes=1)
    assert export(tmp_path / "run", to, tmp_path / "out") == 0
    if to == "hf":
        assert load(tmp_path / "out", tmp_path, monkeypatch)[0]["reply"].startswith("?<action>")


@pytest.mark.parametrize(("seed", "status"), [(2**63, 0), (2**64, 2)])
def test_a_seed_of_64_bits_is_exported_no_larger_one(tmp_path, monkeypatch, capsys, seed, status):
    monkeypatch.setattr("vlgym.play.rollout.episode_seed", lambda *args: seed)
    record(tmp_path / "run", episodes=1)
    assert export(tmp_path / "run", "hf", tmp_path / "out") == status
    if status:
        assert "does not fit into 64 bits" in capsys.readouterr().err
    else:
        assert set(load(tmp_path / "out", tmp_path, monkeypatch)["seed"]) == {seed}


def test_only_what_succeeded(tmp_path, monkeypatch, capsys):
    good, bad = tmp_path / "good", tmp_path / "bad"
    record(good, OraclePolicy(), episodes=2)
    lost = record(bad, SILENT, episodes=1, max_turns=3)
    writer = TrajectoryWriter(good, read_header(good))
    for episode in lost:
        writer.write(episode)
    assert export(good, "hf", tmp_path / "out", "--success") == 0
    assert "turns of 2 episodes" in capsys.readouterr().out
    assert set(load(tmp_path / "out", tmp_path, monkeypatch)["parse"]) == {"ok"}
    assert export(bad, "hf", tmp_path / "none", "--success") != 0
    assert "holds no finished episode that succeeded" in capsys.readouterr().err
    assert export(bad, "sft", tmp_path / "none") != 0
    assert "could be read as a legal action" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_damaged_picture_is_one_line_and_leaves_nothing(run, tmp_path, capsys):
    folder = shutil.copytree(run[0], tmp_path / "run")
    picture = next((folder / "images").iterdir())
    other = io.BytesIO()
    Image.new("RGB", (300, 300)).save(other, "PNG")
    picture.write_bytes(other.getvalue())
    for to in ("hf", "sft"):
        assert export(folder, to, tmp_path / "out") != 0
        line = capsys.readouterr().err.strip().splitlines()[-1]
        assert line.startswith("vlgym: ")
        assert "damaged" in line
        assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_bad_input_is_one_line(run, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep me")
    (tmp_path / "empty").mkdir()
    for words, message in (
        ([str(tmp_path / "empty"), "--to", "hf", "--out", str(tmp_path / "x")], "holds no recorded episode"),
        ([str(run[0]), "--to", "hf", "--out", str(tmp_path / "full")], "is not empty"),
    ):
        assert main(["export", *words]) == 2
        assert message in capsys.readouterr().err
    assert (tmp_path / "full" / "mine.txt").read_text() == "keep me"


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(NotInstalledError, match=r"needs datasets, which is not installed: .*\[export\]"):
        parquet.write_chats([], Path("nowhere"))

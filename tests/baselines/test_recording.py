"""Episodes that are recorded while training: whole ones, the same whether or not the run was stopped, and no number of
training depends on them."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from stage import ENV, SMALL, on_stage

from baselines import loop, vldac
from baselines.learning.recording import EpisodeRecorder, recordings
from baselines.runs.checkpoint import checkpoints
from baselines.runs.folder import describe
from vlgym.cli.app import main
from vlgym.trajectory import METADATA, TrajectoryWriter, read_trajectories

RUN = replace(
    vldac.Config(**SMALL), updates=5, num_envs=2, minibatch=6, value_warmup=0, eval_episodes=0, record_every=1,
    env_kwargs=("max_turns=4",), final_lr=1.0,
)  # fmt: skip


def files(folder):
    """Name -> bytes of all files."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def episodes(folder):
    """The recorded episodes, oldest first."""
    return [episode for part in recordings(folder) for episode in read_trajectories(part)]


def newest_tensors(out):
    return load_file(checkpoints(out / "checkpoints")[-1] / "tensors.safetensors")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was not stopped."""
    return vldac.train(replace(RUN, out=tmp_path_factory.mktemp("whole") / "run"))


def test_a_recorded_episode_spans_updates_and_holds_prompt_picture_reply_action_and_reward(whole):
    found = episodes(whole.out / "episodes")
    assert len(found) >= 2
    for episode in found:
        assert [record.turn for record in episode] == list(range(len(episode)))
        assert [record.terminated or record.truncated for record in episode] == [False] * (len(episode) - 1) + [True]
        assert len({(record.env_id, record.episode, record.seed) for record in episode}) == 1
    assert any(len(episode) > RUN.rollout_steps for episode in found)
    numbers = [episode[0].episode for episode in found]
    assert all(number % RUN.num_envs == 0 for number in numbers)  # all of environment 0
    assert numbers == sorted(set(numbers))
    first = found[0][0]
    assert first.image.shape[2] == 3
    assert first.messages[-1]["content"]
    assert first.reply != ""
    header = json.loads((recordings(whole.out / "episodes")[0] / "run.json").read_text())
    run = json.loads((whole.out / "run.json").read_text())
    assert header["environments"] == run["environments"]
    assert (header["split"], header["policy"]["max_new_tokens"]) == ("train", 12)


def test_every_recorded_turn_holds_value_advantage_and_the_log_probabilities_of_its_tokens(whole):
    turns = [record for episode in episodes(whole.out / "episodes") for record in episode]
    notes = [record.learner for record in turns]
    assert None not in notes
    assert len({note.value for note in notes}) > 1
    assert len({note.advantage for note in notes}) > 1
    for record, note in zip(turns, notes, strict=True):
        assert len(note.tokens) == len(note.log_probs) > 0
        assert all(log_prob <= 0 for log_prob in note.log_probs)
        assert "".join(note.tokens).startswith(record.reply)


def test_recording_changes_no_number_of_training(whole, tmp_path):
    without = vldac.train(replace(RUN, record_every=0, out=tmp_path / "run"))
    assert not (without.out / "episodes").exists()
    first, second = newest_tensors(whole.out), newest_tensors(without.out)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_run_that_was_stopped_in_the_middle_of_an_episode_records_what_a_whole_run_records(whole, tmp_path):
    out = tmp_path / "run"
    stopped = vldac.train(replace(RUN, updates=3, out=out))
    assert stopped.recorder.get_state()["open"], "the stop must lie within an episode"
    lost = out / "episodes" / "update-000004"  # what a process that was killed after its checkpoint had still written
    half = out / "episodes" / ".update-000005.part"
    one = episodes(out / "episodes")[0]
    for path in (lost, half):
        TrajectoryWriter(path, {"format": 3}).write(one)
    vldac.train(vldac.Config(out=out, resume=True, updates=5))
    assert files(out / "episodes") == files(whole.out / "episodes")


def test_only_the_newest_recordings_remain(whole, tmp_path):
    run = vldac.train(replace(RUN, record_keep=1, out=tmp_path / "run"))
    assert [path.name for path in recordings(run.out / "episodes")] == [recordings(whole.out / "episodes")[-1].name]
    assert [path.name for path in (run.out / "episodes").iterdir()] == [recordings(run.out / "episodes")[0].name]


@pytest.mark.parametrize(("module", "changes"), [(vldac, {"double_buffer": True}), (loop, {"group": 2})])
def test_every_kind_of_rollout_is_recorded_one_episode_at_a_time(tmp_path, module, changes):
    learner = on_stage(module, rollout_steps=30, env_kwargs=("max_turns=4",), **changes)
    recorder = EpisodeRecorder(tmp_path / "episodes", describe("x", {}, [ENV], {}), every=2, keep=9)
    learner.collector.recorder = recorder
    for update in (1, 2, 3):
        recorder.begin(update)
        learner.collector.play(1.0) if module is loop else learner.collector.play(30)
        recorder.end(update)
    found = [list(read_trajectories(path)) for path in recordings(tmp_path / "episodes")]
    assert [len(each) for each in found] == [1, 1]  # of updates 1 and 3
    assert [path.name for path in recordings(tmp_path / "episodes")] == ["update-000001", "update-000003"]
    assert found[0][0][0].episode == 0


def test_of_several_environments_one_episode_each_is_recorded(tmp_path):
    ids = f"{ENV},vlgym/EZPoints-v0"
    learner = on_stage(vldac, env=ids, rollout_steps=30)
    recorder = EpisodeRecorder(tmp_path / "episodes", {"format": 3}, every=1, keep=9)
    learner.collector.recorder = recorder
    recorder.begin(1)
    learner.collector.play(30)
    found = list(read_trajectories(recorder.end(1)))
    assert sorted(episode[0].env_id for episode in found) == sorted(ids.split(","))


def test_a_full_disk_leaves_no_half_of_a_recording(tmp_path, monkeypatch):
    learner = on_stage(vldac, rollout_steps=30)
    recorder = EpisodeRecorder(tmp_path / "episodes", {"format": 3}, every=1, keep=9)
    learner.collector.recorder = recorder
    recorder.begin(1)
    learner.collector.play(30)

    def full(self, episode):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TrajectoryWriter, "write", full)
    with pytest.raises(OSError, match="No space"):
        recorder.end(1)
    assert list((tmp_path / "episodes").iterdir()) == []


# ---- vlgym play --replay ---------------------------------------------------------------------------------------------


def test_the_newest_episode_of_a_run_is_shown_turn_by_turn(whole, capsys):
    assert main(["play", "--replay", str(whole.out), "--index", "0"]) == 0
    shown = capsys.readouterr().out
    newest = episodes(whole.out / "episodes")[-1]
    assert shown.count("--- turn ") == len(newest)
    assert f"seed {newest[0].seed}" in shown
    assert f"parse: {newest[0].parse}" in shown
    picture = next(part for part in shown.split() if part.endswith(".png>"))
    assert picture[:-1].startswith(str(recordings(whole.out / "episodes")[-1] / "images"))
    assert main(["play", "--replay", str(whole.out), "--index", "1"]) == 0
    assert f"seed {episodes(whole.out / 'episodes')[-2][0].seed}" in capsys.readouterr().out


def test_into_a_pipe_all_recorded_episodes_are_printed_the_newest_last(whole, capsys):
    assert main(["play", "--replay", str(whole.out)]) == 0
    shown = capsys.readouterr().out
    recorded = episodes(whole.out / "episodes")
    assert len(recorded) > 1
    assert re.findall(r"seed (\d+)\. Recorded", shown) == [str(episode[0].seed) for episode in recorded]
    assert shown.count("--- turn ") == sum(map(len, recorded))


def test_a_folder_without_episodes_and_an_episode_that_is_not_there_are_errors_of_one_line(whole, tmp_path, capsys):
    for words in (["--replay", str(tmp_path)], ["--replay", str(whole.out), "--index", "99"], [],
                  ["--replay", str(whole.out), ENV]):  # fmt: skip
        assert main(["play", *words]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert len(told.err.strip().splitlines()) == 1


def test_what_a_model_wrote_does_not_steer_the_terminal(whole, tmp_path, capsys):
    episode = episodes(whole.out / "episodes")[0]
    episode[0] = replace(episode[0], reply="\x1b[2Jgone\u202e")
    TrajectoryWriter(tmp_path / "one", {"format": 3}).write(episode)
    assert main(["play", "--replay", str(tmp_path / "one")]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\x1b[2Jgone" in shown


def test_the_half_episode_that_a_kill_leaves_is_not_shown(whole, tmp_path, capsys):
    writer = TrajectoryWriter(tmp_path / "one", {"format": 3})
    found = episodes(whole.out / "episodes")
    writer.write(found[0])
    writer.write(found[1][:1])
    with (tmp_path / "one" / METADATA).open("a") as file:
        file.write('{"half')
    assert main(["play", "--replay", str(tmp_path / "one")]) == 0
    assert f"seed {found[0][0].seed}" in capsys.readouterr().out

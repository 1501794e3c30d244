"""Episodes that are recorded while training; no number of training depends on them."""

from __future__ import annotations

import json
import shutil

from stage import ENV, FINISHED, assert_same_end, on_stage, rewind

from baselines import loop, vldac
from baselines.learning.recording import EpisodeRecorder, recordings
from baselines.runs.folder import describe
from vlgym.play.trajectory import read_trajectories


def episodes(folder):
    return [episode for part in recordings(folder) for episode in read_trajectories(part)]


def test_a_recorded_episode_spans_updates_and_holds_every_turn(finished):
    found = episodes(finished / "episodes")
    assert found
    for episode in found:
        assert [record.turn for record in episode] == list(range(len(episode)))
        assert [record.terminated or record.truncated for record in episode] == [False] * (len(episode) - 1) + [True]
        assert len({(record.env_id, record.episode, record.seed) for record in episode}) == 1
    assert any(len(episode) > FINISHED.rollout_steps for episode in found)
    numbers = [episode[0].episode for episode in found]
    assert all(number % FINISHED.num_envs == 0 for number in numbers)  # all of environment 0
    assert numbers == sorted(set(numbers))
    first = found[0][0]
    assert first.image.shape[2] == 3
    assert first.messages[-1]["content"]
    assert first.reply != ""
    header = json.loads((recordings(finished / "episodes")[0] / "run.json").read_text())
    run = json.loads((finished / "run.json").read_text())
    assert header["environments"] == run["environments"]
    assert (header["split"], header["policy"]["max_new_tokens"]) == ("train", 12)


def test_recording_changes_no_number_of_training(finished, tmp_path):
    out = rewind(finished, tmp_path / "run")
    shutil.rmtree(out / "episodes")
    vldac.train(vldac.Config(out=out, resume=True, record_every=0))
    assert not (out / "episodes").exists()
    assert_same_end(finished, out)


def test_rollouts_of_groups_are_recorded_one_episode_at_a_time(tmp_path):
    learner = on_stage(loop, rollout_steps=30, env_kwargs=("max_turns=4",), group=2)
    recorder = EpisodeRecorder(tmp_path / "episodes", describe("x", {}, [ENV], {}), every=2, keep=9)
    learner.collector.recorder = recorder
    for update in (1, 2, 3):
        recorder.begin(update)
        learner.collector.play(1.0)
        recorder.end(update)
    found = [list(read_trajectories(path)) for path in recordings(tmp_path / "episodes")]
    assert [len(each) for each in found] == [1, 1]  # of updates 1 and 3
    assert [path.name for path in recordings(tmp_path / "episodes")] == ["update-000001", "update-000003"]
    assert found[0][0][0].episode == 0

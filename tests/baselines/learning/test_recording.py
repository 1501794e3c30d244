"""Episodes that are recorded while training; no number of training depends on them."""

import json
import math
import shutil
from types import SimpleNamespace

import numpy as np
import torch
from bandit import CUT, on_stage
from stage import FINISHED, assert_same_end, rewind

from baselines import loop, vldac
from baselines.engine.engine import Sample
from baselines.learning.batch import lay_out
from baselines.learning.recording import EPISODES_FOLDER, EpisodeRecorder, recordings
from baselines.runs.folder import describe
from vlgym.play.trajectory import read_trajectories
from vlgym.types import LearnerNotes, StepRecord


def test_a_recorded_episode_spans_updates_and_holds_every_turn(finished):
    parts = recordings(finished / "episodes")
    trajectories = [episode for part in parts for episode in read_trajectories(part)]
    assert trajectories
    for episode in trajectories:
        assert [record.turn for record in episode] == list(range(len(episode)))
        assert [record.terminated or record.truncated for record in episode] == [False] * (len(episode) - 1) + [True]
        assert len({(record.env_id, record.episode, record.seed) for record in episode}) == 1
    assert any(len(episode) > FINISHED.rollout_steps for episode in trajectories)
    numbers = [episode[0].episode for episode in trajectories]
    assert all(number % FINISHED.num_envs == 0 for number in numbers)  # all of environment 0
    assert numbers == sorted(set(numbers))
    first = trajectories[0][0]
    assert first.image.shape[2] == 3
    assert first.messages[-1]["content"]
    assert first.reply != ""
    header = json.loads((parts[0] / "run.json").read_text())
    assert header["environments"] == json.loads((finished / "run.json").read_text())["environments"]
    assert (header["split"], header["policy"]["max_new_tokens"]) == ("train", 9)


def test_recording_changes_no_number_of_training(finished, tmp_path):
    out = rewind(finished, tmp_path / "run")
    shutil.rmtree(out / "episodes")
    vldac.train(vldac.Config(out=out, resume=True, record_every=0))
    assert not (out / "episodes").exists()
    assert_same_end(finished, out)


def test_rollouts_of_groups_are_recorded_one_episode_at_a_time(tmp_path):
    learner = on_stage(loop, env=CUT, num_envs=4, group=2)
    recorder = EpisodeRecorder(tmp_path / "episodes", describe("x", {}, [CUT], {}), every=2, keep=9)
    learner.collector.recorder = recorder
    for update in (1, 2, 3):
        recorder.begin(update)
        learner.collector.play(1.0)
        recorder.end(update)
    trajectories = [list(read_trajectories(path)) for path in recordings(tmp_path / "episodes")]
    assert [len(each) for each in trajectories] == [1, 1]  # of updates 1 and 3
    assert [path.name for path in recordings(tmp_path / "episodes")] == ["update-000001", "update-000003"]
    assert trajectories[0][0][0].episode == 0


def test_a_turn_gets_the_notes_of_its_own_row_of_the_batch(tmp_path):
    """Two turns of a rollout of four rows; of the third one the learner knows nothing."""
    samples = [
        Sample(None, torch.tensor([row, 9]), torch.tensor([-0.5, -row / 4]), torch.zeros(1), cut=False)
        for row in range(4)
    ]

    def turn(episode, index, row):
        return episode, StepRecord(
            env_id="vlgym/X-v0", episode=episode, seed=7, turn=index, messages=[], text="", reply="left",
            image=np.zeros((4, 4, 3), np.uint8), actions=("left",), parse="ok", reward=0.0,
            terminated=index == 1, truncated=False, invalid=False, success=False, extra=samples[row],
        )  # fmt: skip

    batch = lay_out(samples, [None] * 4, pad_id=0)
    batch.advantages, batch.values = torch.tensor([0.5, math.nan, -1.5, 3.0]), torch.tensor([1.0, 2.0, 3.0, 4.0])
    recorder = EpisodeRecorder(tmp_path / EPISODES_FOLDER, {"format": 4}, every=1, keep=9)
    recorder.begin(1)
    recorder.see([turn(0, 0, 2), turn(1, 0, 3)])
    recorder.see([turn(0, 1, 1)])
    recorder.note(batch, SimpleNamespace(tokenizer=SimpleNamespace(decode=lambda ids, **_: f"<{ids[0]}>")))
    ((first, second),) = read_trajectories(recorder.end(1))
    assert first.learner == LearnerNotes(3.0, -1.5, ("<2>", "<9>"), (-0.5, -0.5))
    assert second.learner == LearnerNotes(2.0, None, ("<1>", "<9>"), (-0.5, -0.25))


def test_going_on_deletes_recordings_of_a_lost_future(tmp_path):
    recorder = EpisodeRecorder(tmp_path / EPISODES_FOLDER, {"format": 4}, every=1, keep=9)
    for name in ("update-000002", "update-000003", "update-000009", ".update-000003.part", ".update-000001.gone"):
        (recorder.folder / name).mkdir(parents=True)
    recorder.forget_later(2)
    assert [path.name for path in recorder.folder.iterdir()] == ["update-000002"]

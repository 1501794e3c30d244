"""`--curriculum`: exact resuming, levels in log and curve, held-out episodes on the highest."""

import json

import pytest
from bandit import LADDER, ONE, SETTINGS, Ladder, on_stage, small_engine
from stage import resume_exactly, roll_out

from baselines import archer, loop, rl4vlm, self_play, vldac
from baselines.learning.collect import Environments
from baselines.learning.warm_start import WarmConfig, warm_start
from baselines.runs.folder import checkpoints
from baselines.runs.logs import read_rows
from vlgym.errors import UserError
from vlgym.play.curriculum import Course, Place

PLAY = {
    **SETTINGS, "env": f"{LADDER},{ONE}", "num_envs": 8, "updates": 4, "rollout_steps": 3,
    "lr": 1e-2, "max_grad_norm": 1.0, "max_new_tokens": 1, "save_every": 1, "minibatch": 24,
}  # fmt: skip
pytestmark = pytest.mark.usefixtures("small_runs")


@pytest.mark.parametrize(
    ("module", "curriculum", "changes"),
    [
        (loop, "prioritized", {"group": 4, "num_envs": 16, "eval_episodes": 2, "eval_controls": False}),
        *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in (
            (vldac, "success", {"value_warmup": 1}), (rl4vlm, "learning-progress", {}),
            (archer, "prioritized", {"critic_warmup": 1, "critic_steps": 4, "critic_batch": 16}),
        )),
    ],
)  # fmt: skip
def test_a_run_stopped_in_mid_curriculum_resumes_bit_for_bit(module, curriculum, changes, tmp_path):
    config = module.Config(**{**PLAY, **changes, "curriculum": curriculum})
    run = resume_exactly(module, config, tmp_path)
    if config.eval_episodes:
        assert {report["env_id"] for report in run.state.evaluations} == {LADDER, ONE}
    state = json.loads((checkpoints(run.out / "checkpoints")[0] / "state.json").read_text())
    memory = state["processes"][0]["collector"]["curriculum"]
    assert memory != Course(curriculum, [LADDER, ONE]).sampler.memory
    for row in read_rows(run.out / "log.jsonl"):
        turns = [row[f"curriculum/Ladder-v0/{level}"] for level in range(3)]
        assert sum(turns) + row["curriculum/One-v0"] >= 16
        if sum(turns):
            assert row["curriculum/level_mean"] == pytest.approx((turns[1] + 2 * turns[2]) / sum(turns))


@pytest.fixture
def noted(monkeypatch):
    lengths, start = [], Ladder.start

    def note(self, rng, options):
        lengths.append((self.seed_split, self.last))
        start(self, rng, options)

    monkeypatch.setattr(Ladder, "start", note)
    return lengths


def test_success_climbs_and_held_out_episodes_play_the_highest_level(tmp_path, noted):
    more = {"updates": 10, "num_envs": 24, "curriculum": "success", "eval_episodes": 2, "eval_controls": False}
    config = {**PLAY, "env": LADDER, **more, "save_every": 12, "record_every": 0, "tracker": "none"}
    vldac.train(vldac.Config(**config, out=tmp_path / "run"))
    assert {last for split, last in noted if split in ("test", "val")} == {3}
    assert {last for split, last in noted if split == "train"} == {1, 2, 3}
    means = [row["curriculum/level_mean"] for row in read_rows(tmp_path / "run" / "log.jsonl")]
    assert means[0] == 0
    assert means[-1] == 2


def test_the_warm_start_imitates_the_oracle_on_all_levels(noted):
    warm = WarmConfig(steps=1, samples=64, batch=8, val_episodes=2)
    warm_start(small_engine(), Environments([LADDER], {}, 1, curriculum="fixed@1"), warm, seed=0)
    assert {last for split, last in noted if split == "train"} == {1, 2}
    assert {last for split, last in noted if split == "val"} == {2}


def test_advantages_reach_the_sampler_by_place():
    learner = on_stage(vldac, env=LADDER, num_envs=6, curriculum="prioritized")
    batch, _ = roll_out(learner)
    raw = (batch.returns - batch.values).abs().tolist()
    for level, error in enumerate(learner.collector.course.sampler.memory["error"]):
        own = [size for size, place in zip(raw, learner.collector.places, strict=True) if place.level == level]
        assert (error is None) == (not own)
        if own:
            assert error == pytest.approx(sum(own) / len(own), rel=1e-4)


def test_environments_put_aside_are_taken_again_and_closed():
    envs = Environments([LADDER, ONE], {}, 2, curriculum="uniform")
    one = envs.make(0)
    other = envs.exchange(0, one, ONE)
    assert envs.exchange(0, other, LADDER) is one
    assert envs.exchange(0, one, ONE) is other
    closed = []
    one.unwrapped.close = lambda: closed.append(LADDER)
    envs.close()
    assert closed == [LADDER]
    assert envs.held_out(LADDER) == {"level": 2}
    assert envs.course.places[-1] == Place(ONE, None)


def test_options_that_do_not_go_together_are_refused():
    with pytest.raises(UserError, match="leave one out"):
        vldac.Config(env=LADDER, curriculum="uniform", env_kwargs=("level=1",)).make_environments()
    with pytest.raises(UserError, match="--curriculum"):
        self_play.Config(env="vlgym/TicTacToe-v0", curriculum="uniform").resolve()

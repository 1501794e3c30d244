"""Self-play: who sits where, whose turns are data, what they are paid, and exact resuming."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from bandit import SETTINGS, small_engine
from stage import SMALL, Stage, resume_exactly, roll_out
from toy_games import MEET, NIM, Nim
from toys import installed

import vlgym
from baselines import self_play
from baselines.engine.engine import Sample
from baselines.learning.game_collector import PoolOptions
from baselines.runs.folder import checkpoints
from vlgym.errors import FailedError, UserError
from vlgym.games.multi import Round
from vlgym.types import Reply, Turn

ONE = "<action>one</action>"


@pytest.fixture(autouse=True)
def _games() -> Iterator[None]:
    with installed(NIM, MEET):
        yield


class Scripted:
    """A model policy that says what a function says; its samples teach nothing."""

    name = "scripted"

    def __init__(self, engine: Any, say: Callable[[Turn], str]) -> None:
        self.engine, self.say = engine, say
        self.turns: list[Turn] = []

    def reply(self, turns: list[Turn]) -> list[Reply]:
        self.turns += turns
        size = self.engine.family.language_model.config.hidden_size
        sample = Sample(torch.tensor([1]), torch.tensor([1, 2]), torch.zeros(2), torch.zeros(size), False)
        return [Reply(self.say(turn), replace(sample)) for turn in turns]


def make(folder: Path, env: str = "vlgym/Nim-v0", say: Callable[[Turn], str] = lambda turn: ONE, **options: Any) -> Any:
    """Self-play at four tables, with what the model says made up."""
    changes = options.pop("changes", {})
    config = replace(self_play.Config(**SMALL), env=env, pool=PoolOptions(**options), **changes).resolve()
    stage = Stage(config, small_engine())
    stage.out, stage.policy = folder, Scripted(stage.weights.engine, say)
    learner = self_play.SelfPlay(stage)
    return SimpleNamespace(learner=learner, games=learner.collector, pool=learner.collector.pool, stage=stage)


def test_where_the_model_holds_every_seat_every_turn_is_data(tmp_path):
    games = make(tmp_path, past=0, fixed=0).games
    played = games.play(1, 30)
    by_game: dict[int, list[Any]] = {}
    for trajectory in played:
        by_game.setdefault(trajectory[0].episode, []).append(trajectory)
    assert len(by_game) >= 8
    for both in by_game.values():
        assert len(both) == 2
        assert sum(record.reward for trajectory in both for record in trajectory) == 0
        assert {trajectory[-1].reward for trajectory in both} == {1.0, -1.0}
        assert [t[-1].success for t in both] == [t[-1].reward == 1.0 for t in both]
        assert all(t[-1].terminated and not t[-1].truncated for t in both)
        assert [record.turn for record in both[0]] == list(range(len(both[0])))
    assert len(games.policy.turns) == sum(map(len, played))


def test_what_a_seat_is_paid_before_its_first_turn_is_not_lost(tmp_path, monkeypatch):
    make_moves = Nim.make_moves

    def pay_the_other(self: Nim, moves: Any) -> Round:
        mover, done = self.mover, make_moves(self, moves)
        return done if done.terminated or mover else Round((0.0, 0.5))

    monkeypatch.setattr(Nim, "make_moves", pay_the_other)
    played = make(tmp_path, past=0, fixed=0).games.play(1, 30)
    firsts, seconds = (
        {t[0].episode: t for t in played if t[0].part.endswith(f"seat {seat}")} for seat in range(2)
    )  # fmt: skip
    assert len(firsts) >= 8
    for game, first in firsts.items():
        paid = len(first) - first[-1].success
        assert sum(record.reward for record in seconds[game]) == 0.5 * paid + (-1 if first[-1].success else 1)


def test_an_opponent_of_the_pool_answers_with_the_weights_that_it_had(tmp_path):
    made = make(tmp_path, past=1.0, fixed=0)
    weights, reply, noted = made.stage.weights.parameters, made.games.policy.reply, []
    past = [weight.detach().clone() for weight in weights]
    now = [weight + 0.5 for weight in past]

    def note(turns: list[Turn]) -> list[Reply]:
        noted.append([all(map(torch.equal, weights, each)) for each in (past, now)])
        return reply(turns)

    made.games.policy.reply = note
    made.pool.see(1)
    with torch.no_grad():
        for weight in weights:
            weight.add_(0.5)
    made.games.play(2, 4)
    assert {tuple(each) for each in noted} == {(True, False), (False, True)}
    assert all(map(torch.equal, weights, now))


def test_a_fixed_player_holds_one_seat_and_its_turns_are_no_data(tmp_path):
    played = make(tmp_path, past=0, fixed=1, players="oracle").games.play(1, 20)
    assert len({trajectory[0].episode for trajectory in played}) == len(played)
    assert {trajectory[0].part for trajectory in played} == {"fixed, seat 0", "fixed, seat 1"}
    lost = [trajectory[-1].reward for trajectory in played]
    assert lost.count(-1.0) > lost.count(1.0)  # who takes one stone each time loses to the oracle


def test_a_trajectory_is_paid_as_the_environment_of_its_seat_pays_it(tmp_path):
    say = lambda turn: "?" if turn.turn == 1 else ONE  # noqa: E731
    played = make(tmp_path, say=say, past=0, fixed=1, players="random").games.play(1, 20)
    assert len(played) > 8
    for trajectory in played:
        env = vlgym.make("vlgym/Nim-v0", seat=int(trajectory[0].part[-1]), opponents="random")
        env.reset(seed=trajectory[0].seed)
        for record in trajectory:
            _, reward, terminated, truncated, info = env.step(record.reply)
            assert (record.reward, record.terminated, record.truncated) == (reward, terminated, truncated)
            assert record.actions == tuple(info["vlgym"]["actions"])
        assert trajectory[-1].success == info["success"]


def test_three_that_move_at_once_are_three_trajectories(tmp_path):
    changes = {"gamma": 0.5, "gae_lambda": 0.0, "rollout_steps": 5}
    say = lambda turn: "<action>stay</action>"  # noqa: E731
    made = make(tmp_path, "vlgym/Meet-v0", say, past=0, fixed=0, changes=changes)
    played = made.games.play(1, 5)
    parts = {trajectory[0].part for trajectory in played}
    assert parts == {f"itself, seat {seat}" for seat in range(3)}
    assert all(t[-1].truncated and t[-1].final_messages for t in played)
    made.stage.state.update = 0
    torch.nn.init.constant_(made.learner.steady.module.outer.bias, 2.0)  # V = 2 everywhere
    batch, _ = roll_out(made.learner)
    records = [record for trajectory in made.games.play(1, 5) for record in trajectory]
    end = next(i for i, record in enumerate(records) if record.truncated)
    assert float(batch.returns[end]) == pytest.approx(0.5 * 2.0)  # the end's value, not 0


def test_the_advantage_of_a_lost_game_is_negative_in_every_turn_of_the_loser_alone(tmp_path):
    changes = {"gamma": 1.0, "gae_lambda": 1.0, "rollout_steps": 12}
    made = make(tmp_path, past=0, fixed=0, changes=changes)
    state = json.loads(json.dumps(made.games.get_state()))
    played = made.games.play(1, 12)
    made.games.set_state({**state, "pool": made.pool.get_state()})
    made.stage.state.update = 1
    batch, metrics = roll_out(made.learner)
    ends = [trajectory[-1].reward for trajectory in played for _ in trajectory]
    assert [advantage > 0 for advantage in batch.advantages.tolist()] == [end > 0 for end in ends]
    assert batch.returns.tolist() == pytest.approx(ends)
    assert metrics["episode/success"] == 0.5
    assert metrics["episode/count"] == len(played)


def test_the_pool_keeps_its_first_and_its_newest_members_and_files_of_checkpoints(tmp_path):
    pool = make(tmp_path, every=2, size=3).pool
    names = []
    for update in range(1, 14):
        pool.see(update)
        names.append([member["update"] for member in pool.members])
        files = {int(path.stem.split("-")[1]) for path in pool.folder.glob("*.safetensors")}
        assert set(names[-1]) <= files
        assert 2 in files or update not in range(3, 9)  # the last checkpoint names it
        pool.get_state()
    assert names[0] == [0]
    assert names[4] == [0, 2, 4]
    assert names[-1] == [0, 10, 12]
    assert files == {0, 8, 10, 12}
    pool.set_state([member for member in pool.members if member["update"] < 12])
    assert not pool._file(12).exists()


def test_a_game_that_fails_is_noted_and_left_and_three_in_a_row_end_the_run(tmp_path, monkeypatch):
    make_moves, stopped = Nim.make_moves, []

    def stop_once(self, moves):
        if self.pile == 3 and not stopped:
            stopped.append(self)
            raise RuntimeError("the engine stopped")
        return make_moves(self, moves)

    games = make(tmp_path, past=0, fixed=0).games
    monkeypatch.setattr(Nim, "make_moves", stop_once)
    played = games.play(1, 40)
    assert games.envs.failures[0]["error"] == "RuntimeError: the engine stopped"
    numbers = {trajectory[0].episode for trajectory in played}
    assert not numbers & {failure["episode"] for failure in games.envs.failures}
    monkeypatch.setattr(Nim, "draw", lambda self, seat: 1 / 0)
    with pytest.raises(FailedError, match="failed 3 times in a row"):
        games.play(2, 4)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"env": "vlgym/NumberLine-v0"}, r"^vlgym/NumberLine-v0 is for one agent\. Of several: vlgym/[^\n]*$"),
        ({"pool": PoolOptions(past=0.7, fixed=0.6)}, r"^[^\n]*they may be 1 at most[^\n]*$"),
    ],
)
def test_what_does_not_go_together_is_one_clear_line(tmp_path, changes, line):
    options = {**SETTINGS, "env": "vlgym/Nim-v0", **changes}
    with pytest.raises(UserError, match=line):
        self_play.train(self_play.Config(**options, out=tmp_path / "run"))


RUN = {
    **SETTINGS, "env": "vlgym/Nim-v0", "num_envs": 2, "rollout_steps": 2, "minibatch": 4,
    "epochs": 1, "updates": 3, "value_warmup": 1, "max_new_tokens": 3, "lr": 1e-2, "final_lr": 1.0,
    "save_every": 1, "pool": PoolOptions(past=0.5, fixed=0.2, every=1, size=2, rating_games=1),
}  # fmt: skip


def test_a_run_that_stops_and_resumes_with_its_pool_ends_as_one_that_does_not(tmp_path, small_runs):
    whole = resume_exactly(self_play, self_play.Config(**RUN), tmp_path).out
    state = json.loads((checkpoints(whole / "checkpoints")[-1] / "state.json").read_text())
    assert [member["update"] for member in state["processes"][0]["collector"]["pool"]] == [0, 2]
    tables = [out / "rating" / "update-000003" / "Nim-v0" / "table.json" for out in (whole, tmp_path / "stopped")]
    names = {each["name"] for each in json.loads(tables[0].read_text())["ratings"]}
    assert names == {"the model", "after 0 updates", "after 2 updates", "random"}
    assert tables[0].read_text() == tables[1].read_text()

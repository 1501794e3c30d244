"""An environment that raises: replaced, its episode truncated in training and replayed elsewhere."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import toys
from toys import make_spec, make_walk

from vlgym.env.seeding import episode_seed
from vlgym.errors import FailedError, UserError
from vlgym.evaluation import evaluate
from vlgym.evaluation.plan import Part
from vlgym.evaluation.run import run_evaluation
from vlgym.play.controls import SHUFFLED
from vlgym.play.env_failures import EnvFailures, close_env
from vlgym.play.policies import OraclePolicy, RandomPolicy
from vlgym.play.rollout import Runner, run_episodes
from vlgym.play.trajectory import read_trajectories
from vlgym.testing.measure import play_figures
from vlgym.types import Reply, Turn

WALK = make_spec(figure_episodes=5)
PART = Part(WALK.id, episodes=4)
INSTALLED = (WALK,)
pytestmark = pytest.mark.usefixtures("toys_installed")
WHERE = [("start", 1), ("start", 3), ("act", 5), ("image", 4)]
where = pytest.mark.parametrize(("method", "call"), WHERE)
Break = Callable[..., None]


@pytest.fixture
def break_at(monkeypatch: pytest.MonkeyPatch) -> Break:
    """Let a method of `Walk` raise at its n-th calls of all environments; with none, at every call."""

    def break_it(method: str, *calls: int, error: Exception | None = None) -> None:
        original, count = getattr(toys.Walk, method), [0]

        def broken(self: Any, *args: Any) -> Any:
            count[0] += 1
            if not calls or count[0] in calls:
                raise error or RuntimeError("the engine\n died")
            return original(self, *args)

        monkeypatch.setattr(toys.Walk, method, broken)

    return break_it


def play_training(noted: list[Any], folder: Path | None = None) -> list[Any]:
    runner = Runner([make_walk(), make_walk()], remake=lambda _: make_walk(), failures=EnvFailures(noted.append))
    return [tell(record) for _ in range(20) for record in runner.step(RandomPolicy())]


def play_plan(noted: list[Any], folder: Path, policy: Any = None, part: Part = PART) -> list[Any]:
    run_evaluation([part], policy or RandomPolicy(), folder, num_envs=2)
    noted += read_failures(folder)
    return sorted(tell(record) for episode in read_trajectories(folder, images=False) for record in episode)


def play_shuffled(noted: list[Any], folder: Path) -> list[Any]:
    return play_plan(noted, folder, part=Part(WALK.id, episodes=4, pictures=SHUFFLED))


def read_failures(folder: Path) -> list[Any]:
    path = folder / "failures.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def tell(record: Any) -> tuple[Any, ...]:
    return record.episode, record.turn, record.seed, record.reply, record.parse, record.reward


def check_note(failure: dict[str, Any], method: str, name: str, split: str) -> None:
    seed = episode_seed(WALK.id, split, failure["episode"])
    assert (failure["env_id"], failure["seed"]) == (name, seed)
    assert failure["error"] == "RuntimeError: the engine died"
    assert method == "image" or (failure["reply"] is None) == (method == "start")


@where
@pytest.mark.parametrize("play", [play_plan, play_shuffled])
def test_an_episode_that_counts_is_played_again_and_the_numbers_stay_the_same(play, method, call, break_at, tmp_path):
    noted: list[Any] = []
    undisturbed = play(noted, tmp_path / "whole")
    assert not noted
    break_at(method, call)
    assert play(noted, tmp_path / "broken") == undisturbed
    (failure,) = noted
    check_note(failure, method, f"{WALK.id} shuffled" if play is play_shuffled else WALK.id, "test")


@pytest.mark.parametrize(("method", "call"), WHERE[:3])  # no picture is drawn for a floor
def test_a_floor_stays_the_same_with_a_warning(method: str, call: int, break_at: Break) -> None:
    undisturbed = play_figures(WALK, RandomPolicy())
    break_at(method, call)
    line = r"vlgym/Walk-v0, episode \d.*was replaced: RuntimeError: the engine died"
    with pytest.warns(RuntimeWarning, match=line):
        assert play_figures(WALK, RandomPolicy()) == undisturbed


@where
def test_training_counts_the_episode_as_truncated_and_goes_on_with_the_next(method, call, break_at):
    noted: list[Any] = []
    break_at(method, call)
    turns = play_training(noted)
    (failure,) = noted
    check_note(failure, method, WALK.id, "train")
    own = [turn for turn in turns if turn[0] == failure["episode"]]
    if failure["reply"] is None:
        assert not own
    else:
        assert [turn[4:] for turn in own][-1] == ("env_error", 0.0)
        assert own[-1][1] == failure["turn"] == len(own) - 1
    assert failure["episode"] + 2 in {turn[0] for turn in turns}


def test_a_broken_turn_has_its_prompt_and_raises_without_a_successor(break_at: Break) -> None:
    break_at("act", 1, 2)
    (record,) = Runner([make_walk()], remake=lambda _: make_walk()).step(OraclePolicy())
    assert (record.terminated, record.truncated, record.invalid) == (False, True, False)
    assert record.final_messages == record.messages
    with pytest.raises(RuntimeError, match="died"):
        Runner([make_walk()]).step(OraclePolicy())


@where
def test_a_fixed_number_of_episodes_is_played_whole(method: str, call: int, break_at: Break) -> None:
    break_at(method, call)
    runner = Runner([make_walk(), make_walk()], remake=lambda _: make_walk(), episodes=4)
    played = run_episodes(runner, RandomPolicy())
    assert sorted(episode[0].episode for episode in played) == [0, 1, 2, 3]
    assert len(runner.failures.noted) == 1


@pytest.mark.parametrize(("method", "call"), [each for each in WHERE if each != ("start", 3)])  # two begin in all
def test_a_rollout_is_resumed_in_a_new_environment(method: str, call: int, break_at: Break) -> None:
    def fresh(failures: EnvFailures | None = None) -> Runner:
        return Runner([make_walk(), make_walk()], remake=lambda _: make_walk(), failures=failures)

    first, noted = fresh(), []
    for _ in range(3):
        first.step(RandomPolicy())
    state = first.get_state()
    second = fresh(EnvFailures(noted.append))
    break_at(method, call)
    second.set_state(state)
    (failure,) = noted
    check_note(failure, method, WALK.id, "train")
    assert second.get_state() == state
    assert [tell(r) for _ in range(9) for r in second.step(RandomPolicy())] == [
        tell(r) for _ in range(9) for r in first.step(RandomPolicy())
    ]


EVERYWHERE = pytest.mark.parametrize("play", [play_training, play_plan])


@EVERYWHERE
@pytest.mark.parametrize("method", ["start", "act", "image"])
def test_three_failures_in_a_row_end_the_run_with_one_line(play, method, break_at, tmp_path):
    break_at(method)
    with pytest.raises(FailedError, match="Walk-v0 failed 3 times in a row, last with RuntimeError"):
        play([], tmp_path / "run")


@EVERYWHERE
def test_an_error_of_the_users_ends_the_run_at_once(play: Any, break_at: Break, tmp_path: Path) -> None:
    break_at("act", 3, error=UserError("Install the engine."))
    noted: list[Any] = []
    with pytest.raises(UserError, match=r"^Install the engine\.") as caught:
        play(noted, tmp_path / "run")
    assert not isinstance(caught.value, FailedError)
    assert not noted


@EVERYWHERE
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_a_policy_raises_is_no_failure_of_the_environment(play, error, monkeypatch, tmp_path):
    def fail(self: Any, turns: list[Turn]) -> list[Reply]:
        raise error("not mine")

    monkeypatch.setattr(RandomPolicy, "reply", fail)
    noted: list[Any] = []
    with pytest.raises(error):
        play(noted, tmp_path / "run")
    assert not noted


def test_what_was_finished_before_the_third_failure_is_kept_and_resume_plays_the_rest(break_at, monkeypatch, tmp_path):
    whole = play_plan([], tmp_path / "whole", OraclePolicy())
    with monkeypatch.context() as patch:
        original = toys.Walk.start

        def start(self: Any, rng: Any, options: Any) -> None:
            if self.reset_seed == episode_seed(WALK.id, "test", 2):
                raise RuntimeError("the engine died")
            original(self, rng, options)

        patch.setattr(toys.Walk, "start", start)
        with pytest.raises(FailedError, match=r"2 of 4 episodes are kept in .* Go on with --resume"):
            run_evaluation([PART], OraclePolicy(), tmp_path / "run", num_envs=1)
    assert len(read_failures(tmp_path / "run")) == 3
    run_evaluation([PART], OraclePolicy(), tmp_path / "run", num_envs=1, resume=True)
    again = [tell(record) for episode in read_trajectories(tmp_path / "run", images=False) for record in episode]
    assert sorted(again) == whole


def test_only_a_finished_episode_ends_a_row_of_failures(break_at: Break) -> None:
    break_at("act", 1, 8, 15, 22, 29)  # an episode of the oracle has 3 to 5 turns
    runner = Runner([make_walk()], remake=lambda _: make_walk())
    for _ in range(35):
        runner.step(OraclePolicy())
    assert len(runner.failures.noted) == 5
    break_at("act", 2, 4, 6)  # each after a step that went well
    for _ in range(5):
        runner.step(OraclePolicy())
    with pytest.raises(FailedError, match="3 times in a row"):
        runner.step(OraclePolicy())


def test_an_environment_that_cannot_be_made_again_is_a_failure_too(break_at: Break) -> None:
    def remake(index: int) -> Any:
        raise OSError("no memory for the engine")

    break_at("act", 2)
    runner = Runner([make_walk()], remake=remake)
    runner.step(OraclePolicy())
    with pytest.raises(FailedError, match="3 times in a row, last with OSError: no memory"):
        runner.step(OraclePolicy())
    kinds = [each["error"].partition(":")[0] for each in runner.failures.noted]
    assert kinds == ["RuntimeError", "OSError", "OSError"]


@pytest.mark.parametrize("method", ["act", "start"])
def test_every_environment_is_closed_even_one_that_raises_when_it_is_closed(method, break_at, monkeypatch):
    made, closed = [], []
    build = toys.Walk.__init__

    def close(self: Any) -> None:
        closed.append(self)
        raise OSError("it hangs")

    monkeypatch.setattr(toys.Walk, "__init__", lambda self, **all_: made.append(self) or build(self, **all_))
    monkeypatch.setattr(toys.Walk, "close", close)
    break_at(method)
    noted: list[Any] = []
    with pytest.raises(FailedError):
        evaluate(WALK.id, RandomPolicy(), episodes=3, num_envs=3, on_failure=noted.append)
    assert len(made) == 9
    assert set(map(id, closed)) == set(map(id, made))
    assert noted[0]["error"] == "RuntimeError: the engine died; close: OSError: it hangs"
    assert close_env(made[0]) == "OSError: it hangs"

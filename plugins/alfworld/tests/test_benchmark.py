"""The benchmark's own games, drawn and in AI2-THOR, in folders of the real format with our games.

The simulator is a stand-in: the Unity build cannot be had by pip.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from vlgym_alfworld import benchmark, thor
from vlgym_alfworld.game import LOOK, PICK, TASKS
from vlgym_alfworld.generator import draw_game
from vlgym_alfworld.rooms import scene_numbers

import vlgym  # noqa: F401
from vlgym.env.seeding import episode_seed
from vlgym.errors import MissingSystemPartError, UserError

PER_SPLIT = 2
ENV = "vlgym/ALFWorld-v0"


def write_game(
    root: Path, split: str, seed: int, task: str, trial: str = "trial_T0", folder: str = "", **changes: Any
) -> Path:
    """Write a generated game; `changes` replace keys of its file, `None` leaves one out."""
    game = draw_game(np.random.default_rng(seed), task, seen=split != "valid_unseen")
    path = root / "json_2.1.1" / split / (folder or game.name) / trial
    path.mkdir(parents=True)
    names = {"object_target": "thing", "parent_target": "parent", "toggle_target": "toggle"}
    wanted = {name: getattr(game.goal, part) for name, part in names.items()}
    trajectory = {"task_type": task, "pddl_params": wanted, "scene": {"scene_num": game.scene}}
    (path / "traj_data.json").write_text(json.dumps(trajectory))
    data = {**game.data(), "walkthrough": ["look"], **changes}
    data = {key: value for key, value in data.items() if value is not None}
    (path / "game.tw-pddl").write_text(json.dumps(data))
    return path


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    yield tmp_path
    benchmark.list_games.cache_clear()


def test_a_split_plays_its_games_in_sorted_order_and_the_oracle_wins(data: Path):
    for split in benchmark.SPLITS:
        for number in range(PER_SPLIT):
            write_game(data, split, number, TASKS[number], trial=f"trial_T{number}")
    env: Any = gymnasium.make(ENV, split="valid_seen").unwrapped
    root = data / "json_2.1.1"
    expected = sorted(str(path.relative_to(root / "valid_seen")) for path in root.glob("valid_seen/*/*"))
    for index, name in enumerate([*expected, expected[0]]):
        observation, info = env.reset(seed=episode_seed(ENV, "val", index))
        assert (info["game"], info["games"]) == (name, "benchmark")
        assert info["scene"] > 0
        assert env._game.goal.thing.lower() in env.task()
        assert observation["image"].std() > 10
        while not info["success"]:
            _, _, _, truncated, info = env.step(env.solve())
            assert not truncated
    env.close()
    env = gymnasium.make(ENV, games="benchmark")
    for split, folder in zip(("train", "val", "test"), benchmark.SPLITS, strict=True):
        assert (root / folder / env.reset(seed=episode_seed(ENV, split, 0))[1]["game"]).is_dir()
    env.close()


def test_a_seed_or_a_number_chooses_a_game_and_rooms_and_other_numbers_are_refused(data: Path):
    for seed in range(3):
        write_game(data, "train", seed, PICK)
    names = [path.parent.name for path in benchmark.list_games("train", TASKS)]
    env_id = "vlgym/ALFWorldPick-v0"
    env = gymnasium.make(env_id, games="benchmark")
    infos = [env.reset(seed=episode_seed(env_id, "train", index))[1] for index in range(3)]
    infos += [env.reset(seed=0, options={"game": number})[1] for number in range(3)]
    infos += [env.reset(seed=number)[1] for number in range(3)]
    assert [info["game"].split("/")[0] for info in infos] == names * 3
    for options, message in (({"game": 3}, "from 0 to 2"), ({"scene": 9}, "bring their rooms")):
        with pytest.raises(UserError, match=message):
            env.reset(seed=0, options=options)
    env.close()


def test_unsolvable_movable_and_sliced_games_are_left_out(data: Path):
    good = write_game(data, "train", 0, PICK)
    write_game(data, "train", 50, PICK, solvable=False)
    write_game(data, "train", 51, PICK, solvable=None)
    for kind in ("with_movable_recep-Cup-Mug-Shelf", "simple-AppleSliced-None-Fridge"):
        write_game(data, "train", 52, PICK, folder=f"pick_and_place_{kind}-7")
    assert benchmark.list_games("train", TASKS) == (good,)


def test_without_the_data_auto_plays_generated_games_and_benchmark_says_what_to_do(data: Path):
    env = gymnasium.make(ENV, split="valid_unseen")
    info = env.reset(seed=1)[1]
    assert (info["games"], info["scene"] in scene_numbers(seen=False)) == ("generated", True)
    with pytest.raises(UserError, match=r"alfworld-download.*ALFWORLD_DATA"):
        gymnasium.make(ENV, games="benchmark")
    assert not list(data.iterdir())
    env.close()


def test_a_damaged_game_file_is_named_with_the_fix(data: Path):
    folder = write_game(data, "train", 0, PICK)
    text = (folder / "game.tw-pddl").read_text()
    (folder / "game.tw-pddl").write_text(text[: len(text) // 2])
    with pytest.raises(UserError, match=r"game\.tw-pddl cannot be read.*alfworld-download --force"):
        benchmark.load_game(folder)
    (folder / "game.tw-pddl").write_text(text)
    (folder / "traj_data.json").write_text('{"task_type": "pick_and_place_simple"}')
    with pytest.raises(UserError, match="lacks 'pddl_params'"):
        benchmark.load_game(folder)
    write_game(data, "valid_seen", 0, PICK, pddl_problem="(define (problem")
    env = gymnasium.make(ENV, split="valid_seen")
    with pytest.raises(UserError, match=r"tw-pddl: .* engine rejects it .*alfworld-download"):
        env.reset(seed=0)


@pytest.mark.parametrize(
    ("text", "name", "code"),
    [
        ("You open the {%s}.", "r.name", "__import__('os').getcwd()"),
        ("You open the {%s}.", "r.name", "r.__class__"),
        ("You open the {%s}.", "r.name", "(lambda: 1)()"),
        ("you see [{%s |", "o.indefinite + ' ' + o.name", "open('/etc/hostname').read()"),
        ('template :: "open {%s}"', "r", "open('/etc/hostname').read()"),
    ],
)
def test_a_grammar_with_code_in_it_is_not_played(data: Path, text: str, name: str, code: str):
    grammar = draw_game(np.random.default_rng(0), PICK).grammar
    hostile = grammar.replace(text % name, text % code)
    assert hostile != grammar
    with pytest.raises(UserError, match="text grammar"):
        benchmark.load_game(write_game(data, "train", 61, PICK, grammar=hostile))


class Simulator:
    """Has the methods of `AlfredThorEnv.Thor` that the backend uses; prints and draws like it."""

    def __init__(self) -> None:
        frame = np.full((300, 300, 3), (200, 0, 0), np.uint8)
        self.met, self.stopped, self.files, self.said = 0, False, [], ""
        self.env = SimpleNamespace(
            last_event=SimpleNamespace(frame=frame),
            get_goal_conditions_met=lambda: (self.met, 2),
            stop=lambda: setattr(self, "stopped", True),
        )

    def reset(self, file: str) -> None:
        self.files.append(file)
        self.said = f"You are in a room. {random.random()}"

    def step(self, command: str) -> None:
        print(command)
        self.met += command.startswith(("take", "use"))

    def get_results(self) -> tuple[Any, ...]:
        commands = ["look", "take pen 1 from desk 1", "use desklamp 1"]
        return self.said, False, commands, self.met == 2, self.met / 2, []


def test_thor_names_all_that_it_lacks(data: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(data))
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(MissingSystemPartError, match=r"Unity build.*X display.*trajectories in"):
        gymnasium.make(ENV, backend="thor")


def test_thor_drives_the_simulator(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    folder, simulator = write_game(data, "train", 1, LOOK), Simulator()
    monkeypatch.setattr(thor, "missing_parts", list)
    monkeypatch.setattr(thor, "_make_simulator", lambda: simulator)
    env = gymnasium.make(ENV, backend="thor", image_size=(300, 300)).unwrapped
    before = random.getstate()
    observation, info = env.reset(seed=0)
    assert simulator.files == [str(folder / "traj_data.json")]
    assert (observation["image"] == (200, 0, 0)).all()
    legal = info["vlgym"]["legal_actions"]
    assert legal == ["look", "take pen 1 from desk 1", "use desklamp 1"]
    for command, result in ((legal[1], (1.0, False)), (legal[2], (51.0, True))):
        _, *outcome, _, info = env.step(f"<action>{command}</action>")
        assert tuple(outcome[:2]) == result
    assert info["score"] == 1.0
    assert random.getstate() == before
    assert capsys.readouterr().out == ""
    env.close()
    assert simulator.stopped

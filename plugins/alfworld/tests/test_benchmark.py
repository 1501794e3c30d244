"""The benchmark's own games: found, listed, checked, played. The folder has the real format; its games are ours."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from benchmark_files import write_game
from vlgym_alfworld import benchmark
from vlgym_alfworld.game import PICK, TASKS
from vlgym_alfworld.generator import draw_game

import vlgym  # noqa: F401
from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError

PER_SPLIT = 4


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for split in benchmark.SPLITS:
        for number in range(PER_SPLIT):
            write_game(tmp_path, split, number, TASKS[number], trial=f"trial_T{number}")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    benchmark._list_games.cache_clear()
    return tmp_path


def test_a_named_split_plays_the_benchmarks_games_in_sorted_order(data: Path):
    env = gymnasium.make("vlgym/ALFWorld-v0", split="valid_seen")
    expected = sorted(
        str(path.parent.relative_to(data / "json_2.1.1" / "valid_seen"))
        for path in data.glob("json_2.1.1/valid_seen/*/*/game.tw-pddl")
    )
    played = [env.reset(seed=episode_seed("vlgym/ALFWorld-v0", "val", index))[1] for index in range(PER_SPLIT + 1)]
    assert [info["game"] for info in played] == [*expected, expected[0]]
    assert all(info["games"] == "benchmark" for info in played)
    env.close()


def test_games_benchmark_takes_the_split_from_the_seed(data: Path):
    env = gymnasium.make("vlgym/ALFWorld-v0", games="benchmark")
    for split, folder in (("train", "train"), ("val", "valid_seen"), ("test", "valid_unseen")):
        name = env.reset(seed=episode_seed("vlgym/ALFWorld-v0", split, 0))[1]["game"]
        assert (data / "json_2.1.1" / folder / name).is_dir()
    env.close()


def test_the_oracle_wins_benchmark_games_and_the_picture_is_drawn(data: Path):
    env = gymnasium.make("vlgym/ALFWorld-v0", split="train").unwrapped
    for seed in range(PER_SPLIT):
        observation, info = env.reset(seed=seed)
        assert observation["image"].std() > 10
        assert info["scene"] > 0
        for _ in range(20):
            _, _, terminated, _, info = env.step(env.solve())
            if terminated:
                break
        assert info["success"]
    env.close()


def test_unsolvable_movable_and_sliced_games_are_left_out(data: Path):
    write_game(data, "train", 50, PICK, solvable=False)
    write_game(data, "train", 51, PICK, solvable="leave out")
    write_game(data, "train", 52, PICK, folder="pick_and_place_with_movable_recep-Cup-Mug-Shelf-7")
    write_game(data, "train", 53, PICK, folder="pick_and_place_simple-AppleSliced-None-Fridge-7")
    benchmark._list_games.cache_clear()
    assert len(benchmark.list_games("train", TASKS)) == PER_SPLIT


def test_without_the_data_auto_plays_generated_games_and_benchmark_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "nothing"))
    env = gymnasium.make("vlgym/ALFWorld-v0", split="valid_unseen")
    assert env.reset(seed=1)[1]["games"] == "generated"
    with pytest.raises(UserError, match=r"alfworld-download.*ALFWORLD_DATA"):
        gymnasium.make("vlgym/ALFWorld-v0", games="benchmark")
    assert not (tmp_path / "nothing").exists()
    env.close()


def test_a_damaged_game_file_is_named_with_the_fix(data: Path):
    folder = benchmark.list_games("train", TASKS)[0]
    text = (folder / "game.tw-pddl").read_text()
    (folder / "game.tw-pddl").write_text(text[: len(text) // 2] + '"solvable": true')
    with pytest.raises(UserError, match=r"game\.tw-pddl cannot be read.*alfworld-download --force"):
        benchmark.load_game(folder)
    (folder / "game.tw-pddl").write_text(text)
    (folder / "traj_data.json").write_text('{"task_type": "pick_and_place_simple"}')
    with pytest.raises(UserError, match="lacks 'pddl_params'"):
        benchmark.load_game(folder)


def test_a_grammar_with_code_in_it_is_not_played(data: Path):
    game = draw_game(np.random.default_rng(0), PICK)
    hostile = ("__import__('os').getcwd()", "r.__class__", "(lambda: 1)()", "open('/etc/hostname').read()")
    for number, code in enumerate(hostile):
        grammar = game.grammar.replace("You open the {r.name}.", f"You open the {{{code}}}.")
        assert grammar != game.grammar
        folder = write_game(data, "train", 61, PICK, trial=f"trial_bad_{number}", grammar=grammar)
        with pytest.raises(UserError, match="text grammar"):
            benchmark.load_game(folder)

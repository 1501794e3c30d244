"""The environment: score, restart, lost positions, level choice, oracle, saving, planners."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vlgym_sokoban.generator import split_of_room
from vlgym_sokoban.groups import GROUPS, load_group
from vlgym_sokoban.level import LETTERS, Level
from vlgym_sokoban.solver import solve

import vlgym
from vlgym.env import VLEnv
from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError

ID = "vlgym/Sokoban-v0"
TWO_BOXES = "########\n#  @$. #\n#.     #\n# $    #\n#      #\n########\n"


def make(**kwargs: Any) -> Any:
    return vlgym.make(ID, **kwargs)


def say(env: VLEnv, *actions: str) -> tuple[Any, ...]:
    result: tuple[Any, ...] = ()
    for action in actions:
        result = env.step(env.parser.format([action]))
    return result


def in_room(tmp_path: Path, room: str, **kwargs: Any) -> Any:
    path = tmp_path / "mine.xsb"
    path.write_text(room)
    env = make(level_file=str(path), **kwargs)
    env.reset(seed=0)
    return env


@pytest.mark.parametrize("name", ["small-v0", "huge-v0"])
def test_replaying_the_stored_solution_scores_exactly_100(name: str) -> None:
    env = make(group=name, level="any", image_size=(112, 112))
    for number, level in enumerate(load_group(name)[:2]):
        _, info = env.reset(seed=0, options={"level": number})
        idle = 100 - 5 * (10 + len(level.boxes) - 0.1 * len(level.solution))
        assert (info["level"], info["score"]) == (level.title, pytest.approx(idle))
        moves = (LETTERS[letter.lower()] for letter in level.solution)
        _, _, terminated, truncated, info = say(env, *moves)
        assert (terminated, truncated, info["success"], info["score"]) == (True, False, True, 100.0)
        assert env.episode_return == pytest.approx(info["upper_reward"])


def test_the_score_keeps_the_best_reward_of_the_episode(tmp_path: Path) -> None:
    env = in_room(tmp_path, TWO_BOXES)
    upper = env.reset(seed=0)[1]["upper_reward"]
    info = say(env, "right")[4]  # onto the target: -0.1 + 1
    assert (info["best_reward"], info["boxes_on_target"]) == (0.9, 1)
    info = say(env, "right")[4]  # off it again: 0.9 - 1.1 = -0.2
    assert env.episode_return == pytest.approx(-0.2)
    assert (info["best_reward"], info["boxes_on_target"], info["steps"]) == (0.9, 0, 2)
    assert info["score"] == pytest.approx(100 + 5 * (0.9 - upper))


def test_restart_takes_back_what_it_undoes(tmp_path: Path) -> None:
    env = in_room(tmp_path, TWO_BOXES, restart=True)
    before = env.image()
    say(env, "right")
    _, reward, terminated, _, info = say(env, "restart")
    assert (reward, terminated, info["boxes_on_target"]) == (pytest.approx(-1.1), False, 0)
    assert np.array_equal(env.image(), before)
    assert env.episode_return == pytest.approx(0.9 - 1.1)
    assert "put back" in env.step("?")[0]["text"]


def test_a_box_that_begins_on_a_target_pays_nothing_before_it_moves(tmp_path: Path) -> None:
    env = in_room(tmp_path, "########\n#*@ $ .#\n########\n")
    assert say(env, "right")[1] == pytest.approx(-0.1)
    info = say(env, "right", "right")[4]
    assert (info["success"], info["score"]) == (True, 100.0)
    assert info["upper_reward"] == pytest.approx(10 + 1 - 0.3)


def test_a_lost_position_is_told_and_restart_mends_it(tmp_path: Path) -> None:
    env = in_room(tmp_path, "#######\n#   . #\n# $   #\n#@    #\n#######\n", restart=True)
    assert not env.reset(seed=0)[1]["unsolvable"]
    info = say(env, "right", "up", "right")[4]  # the box is in the target's row
    assert not info["unsolvable"]
    env.reset(seed=0)
    info = say(env, "up", "right", "right", "right", "right")[4]  # the box is at a wall without a target
    assert info["unsolvable"]
    assert env.oracle() == "restart"
    info = say(env, "restart")[4]
    assert not info["unsolvable"]
    assert env.oracle() != "restart"


def test_the_oracle_solves_from_any_position_that_random_play_reaches_unless_it_is_lost() -> None:
    env = make(max_turns=400, max_steps=400)
    rng = np.random.default_rng(4)
    solved = lost = 0
    while solved < 5 or lost < 2:
        _, info = env.reset(seed=solved + lost)
        ended = False
        for _ in range(int(rng.integers(1, 25))):
            if not ended:
                _, _, ended, _, info = say(env, str(rng.choice(env.legal_actions())))
        if info["unsolvable"]:
            assert env.solve() is None
            lost += 1
            continue
        while not ended:
            _, _, ended, _, info = env.step(env.solve())
        assert info["success"]
        solved += 1


def test_the_step_limit_truncates() -> None:
    env = make(max_steps=3)
    env.reset(seed=episode_seed(ID, "val", 1))
    flags = [say(env, "up")[2:4] for _ in range(3)]
    assert flags == [(False, False), (False, False), (False, True)]


def test_each_group_has_its_own_step_limit_under_the_global_planner() -> None:
    assert make().max_turns == 50
    limits = {name: make(group=name, level="any", planner="global").max_turns for name in GROUPS}
    assert limits == {
        "small-v0": 200, "small-v1": 200, "v0": 200, "v1": 120, "v2": 200, "large-v0": 300,
        "large-v1": 300, "huge-v0": 300,
    }  # fmt: skip


def test_own_sizes_and_solution_lengths_are_obeyed() -> None:
    env = make(rows=6, columns=9, boxes=1, min_solution=4, max_solution=9)
    assert env.image_size == (192, 288)
    for seed in range(5):
        _, info = env.reset(seed=seed)
        assert (env.board.level.rows, env.board.level.columns, info["boxes"]) == (6, 9, 1)
        assert 4 <= info["solution_steps"] <= 9


def test_a_longer_walk_digs_a_larger_room() -> None:
    walls = []
    for steps in (6, 60):
        env = make(gen_steps=steps)
        env.reset(seed=0)
        walls.append(len(env.board.level.walls))
    assert walls[0] > walls[1] + 4


def test_the_seed_chooses_among_all_levels_of_a_file(tmp_path: Path) -> None:
    env = in_room(tmp_path, f"{TWO_BOXES}Title: first\n\n#####\n#@$.#\n#####\n")
    assert {env.reset(seed=seed)[1]["level"] for seed in range(8)} == {"first", "mine/1"}


def test_the_oracle_of_nine_actions_pushes_and_its_thought_names_cells_from_1(tmp_path: Path) -> None:
    env = in_room(tmp_path, "#####\n#@$.#\n#####\n", action_set="gym")
    assert env.oracle() == "push right"
    assert env.think("push right") == "player at row 2 column 2, push box at row 2 column 3 right"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"group": "small"}, "Nearest: small-v"),
        ({"level": 50}, "small-v0 has levels 0 to 49"),
        ({"level": "first"}, "'any' lets the seed choose"),
        ({"level": 3, "boxes": 4}, "boxes can be given only for drawn rooms"),
        ({"boxes": 7}, "boxes=7 must be an integer from 1 to 6"),
        ({"max_steps": 0}, "max_steps=0 must be >= 1"),
        ({"min_solution": 20, "max_solution": 10}, "min_solution=20"),
        ({"level_file": "no/such/file.xsb"}, "cannot be read"),
        ({"image_size": (32, 32)}, r"leaves 4 pixels a cell .*image_size=\(224, 224\)"),
    ],
)
def test_wrong_arguments_are_explained(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make(**kwargs).reset(seed=0)


def test_a_level_that_cannot_be_played_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="reset option level=99 does not exist: group small-v0 has levels 0 to 49"):
        make().reset(seed=0, options={"level": 99})
    with pytest.raises(UserError, match=r"Level mine/0 has no solution \(proved\)"):
        in_room(tmp_path, "######\n#@  .#\n#$   #\n######\n")


def test_restart_gives_back_what_a_box_lost_that_began_on_its_target(tmp_path: Path) -> None:
    env = in_room(tmp_path, "########\n# @*   #\n#      #\n#  $.  #\n########\n", restart=True)
    rewards = [say(env, action)[1] for action in ("left", "restart", "right", "restart")]
    assert rewards == pytest.approx([-0.1, -0.1, -1.1, 0.9])
    assert env.board.on_target == 1


def test_magebenchs_protocol_is_its_headings_and_no_info_text() -> None:
    online, plan = make(protocol="magebench"), make(protocol="magebench", planner="global")
    assert (online.parser.name, plan.parser.name) == ("headings", "headings-plan")
    text, bare = (env.reset(seed=1)[0]["text"] for env in (make(), online))
    assert "Boxes on targets: 0 of 2" in text
    assert "Boxes on targets" not in bare
    assert "# action" in bare
    assert online.legal_actions() == ["Up", "Down", "Left", "Right"]
    assert online.step("# analyze\nA wall.\n# action\nup")[4]["vlgym"]["parse"] == "no_action"
    assert online.step("# analyze\nA wall.\n# action\nUp")[4]["vlgym"]["actions"] == ["Up"]
    plan.reset(seed=1)
    assert plan.step(plan.solve())[4]["success"]
    assert online.step("?")[1] == 0.0
    chosen = make(protocol="magebench", parser="tag", info_text=True, system_turn=False)
    assert (chosen.parser.name, chosen.info_text, chosen.system_turn) == ("tag", True, False)
    assert online.system_turn


def test_the_words_of_the_picture_are_the_room_itself() -> None:
    env = make(modality="text")
    env.reset(seed=1)
    for _ in range(4):
        _, *rows = env.describe().split("\n")
        assert Level.from_rows(rows) == replace(env.board.to_level(), title="")
        env.step(env.solve())


DRAWN = "vlgym/SokobanDrawn-v0"


@pytest.mark.parametrize("level", range(6))
def test_a_level_draws_rooms_of_its_size_boxes_and_solution_length_on_its_split(level: int) -> None:
    env = vlgym.make(DRAWN, level=level)
    room = env.level_arguments[level]["room"]
    split = ("train", "val", "test")[level % 3]
    _, info = env.reset(seed=episode_seed(DRAWN, split, 0))
    drawn = env.board.level
    assert (drawn.rows, drawn.columns, info["boxes"]) == (room.rows, room.columns, room.boxes)
    assert room.min_solution <= len(solve(drawn).moves) <= room.max_solution
    walls = np.array([[symbol == "#" for symbol in row] for row in drawn.to_rows()])
    assert split_of_room(walls) == split
    assert 224 // drawn.rows >= 24, "a cell is smaller than the card says"


def test_without_a_level_it_is_sokoban_and_sokobans_own_levels_are_the_shipped_ones() -> None:
    drawn, plain = vlgym.make(DRAWN), make()
    drawn.reset(seed=1, options={"level": 1})
    a, b = drawn.reset(seed=3), plain.reset(seed=3)
    assert np.array_equal(a[0]["image"], b[0]["image"])
    assert (a[0]["text"], a[1]) == (b[0]["text"], b[1])
    assert plain.reset(seed=3, options={"level": 40})[1]["level"] == "small-v0/40"
    assert make(level=40).arguments["level"] == 40

"""Shipped scenarios fit their names; bad files are refused with file and place."""

import ast
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from vlgym_football.plugin import MAGEBENCH, MAGEBENCH_MINI, PACKAGE, TEAM
from vlgym_football.scenario import FOLDER, METRES, Scenario, get_scenario, lane_clearance, parse_scenarios, read_file

from vlgym.errors import UserError

GOOD = (
    "scenarios:\n  mine:\n    ball: [0.5, 0.0]\n    left:\n      - [GK, -0.9, 0]\n      - [CF, 0.49, 0]\n"
    "    right:\n      - [GK, 0.98, 0]\n"
)
CELLS_X, CELLS_Y = ((-1, -0.33), (-0.33, 0.33), (0.33, 1)), ((-0.42, -0.14), (-0.14, 0.14), (0.14, 0.42))


def places(scenario: Scenario, side: str) -> np.ndarray:
    """Return the places of a team, `[n, 2]`."""
    return np.array([[p.x, p.y] for p in getattr(scenario, side)])


def count_open_lanes(ball: np.ndarray, mates: np.ndarray, opponents: np.ndarray) -> int:
    """Count the mates for a pass: 6 to 40 m off, at most 3 m behind, lane and mate 3 m free."""
    count = 0
    for mate in mates:
        way = (mate - ball) * METRES
        marker = np.hypot(*((opponents - mate) * METRES).T).min()
        reached = 6 <= np.hypot(*way) <= 40 and way[0] >= -3
        count += reached and marker >= 3 and lane_clearance(ball, mate, opponents) >= 3
    return count


def test_there_are_108_situations_and_19_of_the_package() -> None:
    assert (len(MAGEBENCH), len(MAGEBENCH_MINI), len(PACKAGE)) == (108, 20, 19)
    assert set(MAGEBENCH_MINI) < set(MAGEBENCH)
    shipped = [name for path in sorted(FOLDER.glob("*.yaml")) for name in read_file(path)]
    assert sorted(shipped) == sorted([*MAGEBENCH, *PACKAGE, *TEAM])


def test_a_situation_fits_its_region_and_category() -> None:
    for name in MAGEBENCH:
        scenario = get_scenario(name)
        region, letter = int(name[1]) - 1, name[3]
        (x0, x1), (y0, y1) = CELLS_X[region % 3], CELLS_Y[region // 3]
        assert x0 <= scenario.ball[0] <= x1, name
        assert y0 <= scenario.ball[1] <= y1, name
        ball, left, right = np.array(scenario.ball), places(scenario, "left"), places(scenario, "right")
        assert len(left) == len(right) == 11, name
        carrier = int(np.argmin(np.hypot(*((left - ball) * METRES).T)))
        assert np.hypot(*((left[carrier] - ball) * METRES)) < 1, name
        assert np.hypot(*((right - ball) * METRES).T).min() > 3, name
        lanes = count_open_lanes(ball, np.delete(left, [0, carrier], axis=0), right[1:])
        assert {"P": lanes == 0, "T": lanes >= 2, "R": True}[letter], name
        rules = Scenario(name, scenario.ball, scenario.left, scenario.right, scenario.title)
        assert scenario == rules, f"{name} has rules of its own"
        assert (rules.duration, rules.left_difficulty, rules.right_difficulty) == (400, 1.0, 0.0)


@pytest.mark.parametrize("name", PACKAGE)
def test_the_packages_scenarios_have_the_figures_of_its_files(name: str) -> None:
    """Read the package's own program text as a syntax tree; nothing of it is run."""
    spec = importlib.util.find_spec("gfootball_engine")
    text = (Path(spec.origin).parents[1] / "gfootball" / "scenarios" / f"{name}.py").read_text()
    added, ball, figures = [], (0.0, 0.0), {}
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Attribute(attr="AddPlayer"), args=[x, y, role, *lazy], keywords=kept):
                place = (ast.literal_eval(x), ast.literal_eval(y))
                added.append((*place, role.id[-2:], bool(lazy), bool(kept)))
            case ast.Call(func=ast.Attribute(attr="SetBallPosition"), args=place):
                ball = tuple(map(ast.literal_eval, place))
            case ast.Assign(targets=[ast.Attribute(attr=figure)], value=value):
                figures[figure] = ast.literal_eval(value)
    scenario = get_scenario(name)
    ours = [(p.x, p.y, p.role, p.lazy, not p.controllable) for p in scenario.left]
    theirs = [(-p.x, -p.y, p.role, p.lazy, not p.controllable) for p in scenario.right]
    assert added == ours + theirs
    assert scenario.ball == ball
    for field, figure, usual in (
        ("duration", "game_duration", None),
        ("right_difficulty", "right_team_difficulty", 0.6),
        ("left_difficulty", "left_team_difficulty", 1.0),
        ("offsides", "offsides", True),
        ("second_half", "second_half", None),
        *((f"end_on_{end}", f"end_episode_on_{end}", False) for end in ("score", "out_of_play", "possession_change")),
    ):
        assert getattr(scenario, field) == figures.get(figure, usual), field
    assert scenario.swap_sides == ("EpisodeNumber" in text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[0.5, 0.0]", "[0.5]", "mine: ball is [0.5]; write [x, y]"),
        ("[0.5, 0.0]", "[1.5, 0.0]", "mine: ball: x=1.5 must be >= -1 and <= 1"),
        ("[0.5, 0.0]", "[0.5, 0.5]", "mine: ball: y=0.5 must be >= -0.42 and <= 0.42"),
        ("CF", "ST", "mine: left, player 2: role='ST' is not one of"),
        ("      - [GK, 0.98, 0]\n", "      - [CB, 0.98, 0]\n", "mine: right needs one goalkeeper"),
        ("      - [GK, 0.98, 0]\n", "      - [GK, 0.98, 0, 1]\n", "mine: right, player 1 is"),
        ("    ball: [0.5, 0.0]\n", "", "mine lacks 'ball'; add a line"),
        ("0]\n      - [CF, 0.49, 0]", "0, false, false]", "no player of ours is controllable"),
        ("    right", "    duration: 0\n    right", "mine: duration=0 must be >= 1"),
        ("    right", "    duration: 1.5\n    right", "whole number of frames"),
        ("    right", "    offsides: 1\n    right", "give true or false"),
        ("[0.5, 0.0]", "[0.5, 0.0", "not valid YAML"),
        ("scenarios", "scenario", "key='scenario' is not one of scenarios"),
        ("  mine:", "  ../mine:", "is not usable"),
    ],
)
def test_a_bad_file_is_refused_with_file_place_and_fix(old: str, new: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_scenarios(GOOD.replace(old, new, 1), "mine.yaml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("mine.yaml: ")


@pytest.mark.parametrize("text", ["", "3", "scenarios: {}", "!!python/object/apply:os.getcwd []", "a: &a [*a]"])
def test_yaml_that_is_no_list_of_scenarios_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"mine\.yaml:"):
        parse_scenarios(text, "mine.yaml")


def test_swapping_sides_is_a_half_turn() -> None:
    scenario = get_scenario("5_vs_5")
    swapped = scenario.swapped()
    assert swapped.left[1].x == -scenario.right[1].x
    assert swapped.swapped() == scenario


def test_jitter_moves_players_but_neither_goalkeepers_nor_the_one_at_the_ball() -> None:
    scenario = get_scenario("R5_P_1")
    moved = scenario.jittered(np.random.default_rng(0), 3.0)
    gaps = np.hypot(*((places(moved, "left") - places(scenario, "left")) * METRES).T)
    carrier = int(np.argmin(np.hypot(*((places(scenario, "left") - np.array(scenario.ball)) * METRES).T)))
    assert gaps[0] == gaps[carrier] == 0
    assert (np.delete(gaps, [0, carrier]) > 0).all()
    assert gaps.max() <= 3 * np.sqrt(2)


def test_lane_clearance_is_the_distance_to_the_segment_in_metres() -> None:
    start, end = np.array([0.0, 0.0]), np.array([0.5, 0.0])
    assert lane_clearance(start, end, np.array([[0.25, 0.05]])) == pytest.approx(0.05 * 83.6)
    assert lane_clearance(start, end, np.array([[0.6, 0.0]])) == pytest.approx(0.1 * 54.4)
    assert lane_clearance(start, end, np.array([[-0.1, 0.0]])) == pytest.approx(0.1 * 54.4 + 1)

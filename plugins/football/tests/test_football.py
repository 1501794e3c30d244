"""The environment: arguments, texts, scores, options and levels."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from vlgym_football import build
from vlgym_football.plugin import FOOTBALL_1, MAGEBENCH, MAGEBENCH_MINI, vlgym_suites

from vlgym.env import VLEnv
from vlgym.errors import MissingSystemPartError, UserError
from vlgym.registry.making import make

Make = Callable[..., VLEnv]


@pytest.fixture
def make_env() -> Iterator[Make]:
    """Build environments of some id; all are closed afterwards."""
    built: list[VLEnv] = []

    def build(env_id: str = "vlgym/Football-v0", **kwargs: Any) -> VLEnv:
        built.append(make(env_id, **kwargs))
        return built[-1]

    yield build
    for env in built:
        env.close()


def test_the_suites_hold_108_situations_and_the_20_published_names() -> None:
    whole, mini = vlgym_suites()
    assert [item["scenario"] for item in whole.items] == list(MAGEBENCH)
    assert [item["scenario"] for item in mini.items] == list(MAGEBENCH_MINI)
    assert (whole.suite, whole.repeats, mini.suite, mini.repeats) == ("magebench", 3, "magebench-mini", 10)
    assert whole.env_id == mini.env_id == FOOTBALL_1.id == "vlgym/Football-v1"
    assert whole.planners == mini.planners == ("online",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"scenario": "R1_P_5"}, "R1_P_"),
        ({"compat": "rl4vlm"}, "magebench"),
        ({"planner": "global"}, "online"),
        ({"scenario_file": "/nowhere.yaml"}, "cannot be read"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_choices(arguments: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        make("vlgym/Football-v0", **arguments)


def test_without_the_engine_the_message_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingSystemPartError, match=r"python -m vlgym_football.build"):
        make("vlgym/Football-v0")


def test_the_text_names_player_ball_time_and_sticky_commands(make_env: Make) -> None:
    env = make_env(scenario="R5_T_1")
    observation, info = env.reset(seed=1)
    number = info["controlled"]
    assert f"You play number {number}. Your number {number} has the ball. On: right." in observation["text"]
    observation, _, _, _, info = env.step("<action>sprint</action>")
    assert "On: right, sprint." in observation["text"]
    assert info["sticky"] == ["right", "sprint"]
    assert info["reply_frames"] == 1


@pytest.mark.parametrize(
    ("env_id", "arguments", "owner", "mix_up", "on"),
    [
        ("vlgym/Football-v0", {}, "us", False, ["right"]),
        ("vlgym/Football-v1", {}, "us", False, []),
        ("vlgym/Football-v1", {"compat": "magebench"}, "nobody", True, []),
        ("vlgym/Football-v0", {"compat": "magebench", "action_mix_up": False}, "nobody", False, []),
    ],
)
def test_start_and_mix_up_are_chosen_apart_and_compat_means_both(
    make_env: Make, env_id: str, arguments: dict, owner: str, mix_up: bool, on: list[str]
) -> None:
    env = make_env(env_id, scenario="R6_T_1", **arguments)
    _, info = env.reset(seed=1)
    assert (info["ball_owner"], info["sticky"]) == (owner, on)
    env.step("<action>release_dribble</action>")
    assert env.match.engine.holds("sprint") is mix_up


@pytest.mark.parametrize("arguments", [{}, {"compat": "magebench"}, {"protocol": "magebench"}])
def test_protocol_and_compat_have_the_published_decision_points(make_env: Make, arguments) -> None:
    env = make_env(scenario="R6_T_1", **arguments)
    env.reset(seed=1)
    env.step(env.parser.format(["top"]))
    assert env.match.decisions.direction == ("right" if arguments else "top")


def test_the_system_turn_is_the_protocols_unless_it_is_given(make_env: Make) -> None:
    for given, on in ((None, True), (False, False)):
        assert make_env(protocol="magebench", system_turn=given).system_turn is on


def test_the_score_is_magebenchs_whatever_the_reward(make_env: Make) -> None:
    scores = []
    for reward in ("magebench", "scoring"):
        env = make_env(scenario="R5_T_1", reward=reward)
        env.reset(seed=3)
        for _ in range(4):
            info = env.step("<action>right</action>")[4]
        scores.append((info["score"], env.episode_return))
    score = scores[0][0]
    assert score > 0
    assert scores == [(score, pytest.approx(score)), (pytest.approx(score), 0)]


def test_without_decision_points_every_reply_is_one_frame(make_env: Make) -> None:
    env = make_env(scenario="R5_T_1", decision_points=False)
    frame = env.reset(seed=3)[1]["frame"]
    assert [env.step("<action>short_pass</action>")[4]["frame"] - frame for _ in range(4)] == [1, 2, 3, 4]


def test_an_episode_ends_by_time_as_a_truncation(make_env: Make, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "scenarios:\n  short:\n    duration: 12\n    ball: [-0.5, 0]\n    left:\n      - [GK, -0.9, 0]\n"
        "      - [CF, -0.51, 0]\n    right:\n      - [GK, 0.98, 0]\n"
    )
    env = make_env(scenario_file=str(path), scenario="short")
    assert env.max_turns == 12
    env.reset(seed=0)
    ended = (False, False)
    while not any(ended):
        _, _, *ended, info = env.step("<action>right</action>")
    assert ended == [False, True]
    assert info["ending"] == "time"
    with pytest.raises(UserError, match="scenario='long' is not one of short"):
        make_env(scenario_file=str(path), scenario="long")


def test_a_group_has_the_turns_of_its_longest_scenario(make_env: Make) -> None:
    assert make_env(scenario="package").max_turns == 3000


def test_the_seed_draws_the_situation_and_an_option_names_it(make_env: Make) -> None:
    env = make_env()
    drawn = [env.reset(seed=seed)[1]["scenario"] for seed in (0, 1, 2, 0)]
    assert len(set(drawn)) == 3
    assert drawn[3] == drawn[0]
    assert env.reset(seed=0, options={"scenario": "R9_R_2"})[1]["scenario"] == "R9_R_2"
    with pytest.raises(UserError, match="no scenario"):
        env.reset(seed=0, options={"scenario": "R9_R_9"})


def test_half_of_the_seeds_exchange_the_places_of_a_full_game(make_env: Make) -> None:
    env = make_env(scenario="5_vs_5")
    places = [env.reset(seed=seed) and env.match.scenario.left[1].x for seed in (0, 2)]
    assert places == [-0.04, 0.0]


def test_a_level_plays_its_own_situations_in_its_episode_alone(make_env: Make) -> None:
    env = make_env()
    drawn = env.reset(seed=3)[1]["scenario"]
    played = [env.reset(seed=3, options={"level": level})[1]["scenario"] for level in range(5)]
    academy = ["empty_goal_close", "empty_goal", "run_to_score", "run_to_score_with_keeper"]
    assert played[:4] == [f"academy_{name}" for name in academy]
    assert played[4] in MAGEBENCH
    assert len(FOOTBALL_1.levels) == 5
    assert env.reset(seed=3)[1]["scenario"] == drawn


def test_only_a_goal_for_us_is_a_success(make_env: Make) -> None:
    env = make_env(scenario="R5_T_1")
    env.reset(seed=1)
    for score in ((1, 0), (0, 1)):
        env.match.now = replace(env.match.now, score=score)
        assert env.success() is (score == (1, 0))

"""The plugin's cards, the names of the scenarios, and its share of MageBench. It imports no environment code."""

from dataclasses import replace

from vlgym import EnvSpec, hookimpl
from vlgym.env.probes import Probe
from vlgym.registry.suites import SuitePart

# Region (a 3 x 3 grid of the pitch, row by row), category (personal, teamwork, real), number.
MAGEBENCH = tuple(f"R{region}_{letter}_{n}" for region in range(1, 10) for letter in "PTR" for n in range(1, 5))

# The mini set, as published.
MAGEBENCH_MINI = (
    "R1_P_2", "R1_R_4", "R2_T_2", "R2_R_1", "R3_P_3", "R3_R_2", "R3_T_2", "R4_P_3", "R4_R_2", "R4_T_2",
    "R5_P_2", "R5_R_3", "R6_T_1", "R6_R_2", "R7_P_3", "R7_R_4", "R8_R_4", "R8_T_3", "R9_P_4", "R9_R_2",
)  # fmt: skip

# The scenarios of the package gfootball 2.10.2.
PACKAGE = (
    "11_vs_11_competition", "11_vs_11_easy_stochastic", "11_vs_11_hard_stochastic", "11_vs_11_kaggle",
    "11_vs_11_stochastic", "1_vs_1_easy", "5_vs_5", "academy_3_vs_1_with_keeper", "academy_corner",
    "academy_counterattack_easy", "academy_counterattack_hard", "academy_empty_goal",
    "academy_empty_goal_close", "academy_pass_and_shoot_with_keeper",
    "academy_run_pass_and_shoot_with_keeper", "academy_run_to_score", "academy_run_to_score_with_keeper",
    "academy_single_goal_versus_lazy", "test_example_multiagent",
)  # fmt: skip
GROUPS = {"any": MAGEBENCH, "mini": MAGEBENCH_MINI, "package": PACKAGE}  # lists to draw from

# The situations of `vlgym/FootballTeam-v0`, each for two to four attackers.
TEAM = (
    "closed_down", "closed_down_left", "through_ball_left", "two_lines", "behind_the_line",
    "behind_the_line_left", "two_centre_backs", "through_ball", "half_right", "half_left",
    "deep_left", "two_lines_left", "deep_right", "early_ball",
)  # fmt: skip

FOOTBALL = EnvSpec(
    id="vlgym/Football-v0",
    entry_point="vlgym_football.football:Football",
    summary="Lead an attack of eleven players to a goal: 108 situations on the Google Research Football engine.",
    family="football",
    max_turns=400,
    reward_range=(-25.0, 1010.0),
    success_rule="the controlled team has scored a goal",
    skills=("perception", "spatial reasoning", "planning", "control"),
    interaction=("a command that holds", "moving players from above", "nothing"),
    difficulty="hard",
    history_turns=5,
    history_images=1,
    image_size=(336, 448),
    pictures="exact",
    oracle="planner",
    oracle_success=0.3,
    random_success_below=0.2,
    figure_episodes=400,  # most end long before 400 turns: 0.1 s at random, 0.6 s with the oracle
    system_requirements=(
        "build-essential", "cmake", "libgl1-mesa-dev", "libegl-dev", "libgl1-mesa-dri", "libboost-python-dev",
        "libboost-thread-dev", "libboost-system-dev", "libboost-filesystem-dev", "libsdl2-dev",
        "libsdl2-image-dev", "libsdl2-ttf-dev", "libsdl2-gfx-dev",
    ),
    references=(
        "MageBench, arXiv 2412.04531",
        "Kurach et al., Google Research Football: A Novel Reinforcement Learning Environment, AAAI 2020 "
        "(gfootball 2.10.2)",
    ),
    truncates_early=True,  # after the scenario's frames, of which a reply may play several
    probes=(
        Probe("passes", ("right", "short_pass", "right", "short_pass", "high_pass"), {"scenario": "R1_P_1"}),
        Probe("a shot", ("right", "right", "shot", "shot", "right", "right"), {"scenario": "R9_R_4"}),
        Probe("the ball is lost", ("left", "left", "left", "left"), {"scenario": "R5_P_1"}),
        Probe("paid for goals only", ("@oracle...",), {"scenario": "academy_empty_goal"}, {"reward": "scoring"}),
        Probe(
            "every reply is one frame", ("right", "sprint", "right", "dribble", "release_sprint", "idle", "sliding"),
            {"scenario": "R1_P_1"}, {"decision_points": False, "action_set": "19"},
        ),
        Probe("published", ("sprint", "dribble", "right"), {"scenario": "R1_P_1"}, {"compat": "magebench"}),
    ),
)  # fmt: skip

FOOTBALL_1 = replace(
    FOOTBALL,
    id="vlgym/Football-v1",
    kwargs={"release_direction": True},
    figure_episodes=100,
    levels=(
        "an open goal near by",
        "an open goal farther off",
        "a run past defenders",
        "a run past defenders and keeper",
        "MageBench's 108 situations",
    ),
    probes=(
        Probe("nothing is on at the start", ("idle",) * 12, {"scenario": "R6_T_1"}, {"action_set": "19"}),
        Probe("the published start", ("right",) * 8, {"scenario": "R1_P_1"}, {"start": "published"}),
        Probe("the mix-up alone", ("sprint", "dribble", "right"), {"scenario": "R1_P_1"}, {"action_mix_up": True}),
        *FOOTBALL.probes,
    ),
)
"""An idle player stands still; in version 0 the run that takes up the ball goes on."""

FOOTBALL_TEAM = EnvSpec(
    id="vlgym/FootballTeam-v0",
    entry_point="vlgym_football.football_team:FootballTeam",
    summary="Two to four attackers, an agent each, need a pass and a goal on the Google Research Football engine.",
    family="football",
    max_turns=24,
    kwargs={"opponents": "oracle"},
    reward_range=(-1.0, 1.0),
    success_rule="the team has scored a goal",
    skills=("several agents", "perception", "spatial reasoning", "cooperation"),
    difficulty="hard",
    image_size=(336, 448),
    pictures="exact",
    oracle="planner",
    oracle_success=0.4,
    random_success_below=0.4,
    figure_episodes=100,  # a game's oracle tries plays on the engine: about a second of a processor
    system_requirements=FOOTBALL.system_requirements,
    references=FOOTBALL.references,
    truncates_early=True,  # with frame_skip that does not divide the duration
)


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    return [replace(FOOTBALL, replaced_by=FOOTBALL_1.id), FOOTBALL_1, FOOTBALL_TEAM]


@hookimpl
def vlgym_suites() -> list[SuitePart]:
    """Return MageBench's 108 situations and its mini set, for the Online planner."""
    return [
        SuitePart(suite, FOOTBALL_1.id, tuple({"scenario": name} for name in names), repeats=repeats)
        for suite, names, repeats in (("magebench", MAGEBENCH, 3), ("magebench-mini", MAGEBENCH_MINI, 10))
    ]

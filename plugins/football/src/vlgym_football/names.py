"""Names of the scenarios, so that lists and suites need no scenario file."""

from __future__ import annotations

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

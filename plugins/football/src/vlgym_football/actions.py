"""Action words, the engine's codes for them, and the published benchmark's confusion of the two. This module speaks
engine codes (`e_BackendAction`) only, not positions in gfootball's action sets."""

from __future__ import annotations

DIRECTIONS = ("left", "top_left", "top", "top_right", "right", "bottom_right", "bottom", "bottom_left")
PASSES = ("long_pass", "high_pass", "short_pass")
SHOT = "shot"
IDLE = "idle"
BUILTIN_AI = "builtin_ai"

ENGINE_CODES: dict[str, int] = {
    name: code
    for code, name in enumerate(
        (
            IDLE, *DIRECTIONS, *PASSES, SHOT, "keeper_rush", "sliding", "pressure", "team_pressure", "switch",
            "sprint", "dribble",
            "release_direction", "release_long_pass", "release_high_pass", "release_short_pass", "release_shot",
            "release_keeper_rush", "release_sliding", "release_pressure", "release_team_pressure", "release_switch",
            "release_sprint", "release_dribble", BUILTIN_AI,
        )
    )
}  # fmt: skip
"""Name -> value of `e_BackendAction` in gfootball 2.10.2 (a test compares both)."""

_SIXTEEN = (*DIRECTIONS, *PASSES, SHOT, "sprint", "release_sprint", "dribble", "release_dribble")

ACTION_SETS: dict[str, tuple[str, ...]] = {
    "16": _SIXTEEN,
    "18": (*_SIXTEEN, "sliding", "release_direction"),
    "19": (*_SIXTEEN, "sliding", "release_direction", IDLE),
}
"""`16`: what MageBench's program offers the model (default). `18`: with the two that complete the number the paper
gives. `19`: the whole default set of gfootball."""

MAGEBENCH_MIX_UP: dict[str, str] = {
    "sprint": "keeper_rush",
    "release_direction": "sliding",
    "release_sprint": "pressure",
    "sliding": "team_pressure",
    "dribble": "switch",
    "release_dribble": "sprint",
    BUILTIN_AI: "dribble",
}
"""Asked for -> executed, with `action_mix_up`: MageBench numbers its actions by gfootball's set `v2` and opens the game
with the set `full`, which disagree in development versions of gfootball (docs/football.md)."""

STICKY = ("sprint", "dribble")
"""Commands that stay on until released; directions stay on as well, until replaced or released."""

MEANINGS: dict[str, str] = {
    "long_pass": "pass far, to a team-mate chosen by your running direction",
    "high_pass": "pass through the air",
    "short_pass": "pass on the ground to a near team-mate",
    SHOT: "shoot at the opponents' goal",
    "sprint": "run faster from now on, with less control of the ball",
    "release_sprint": "stop sprinting",
    "dribble": "guard the ball from now on, running slower",
    "release_dribble": "stop dribbling",
    "sliding": "sliding tackle",
    "release_direction": "stop running",
    IDLE: "change nothing",
}


def engine_code(name: str, mix_up: bool) -> int:
    """Return the engine's code for an action word; with `mix_up` the code of what MageBench executes instead."""
    return ENGINE_CODES[MAGEBENCH_MIX_UP.get(name, name) if mix_up else name]

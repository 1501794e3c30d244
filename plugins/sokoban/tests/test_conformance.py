"""The contract, checks that take long aside, and a part of it with difficulty levels."""

from vlgym.testing import CHECKS, EnvConformance

SWEPT = {"resources", "processes", "blind", "silence"}


class TestDrawnLevels(EnvConformance):
    env_id = "vlgym/Sokoban-v0"
    checks = tuple(name for name in CHECKS if name not in SWEPT)


class TestDifficultyLevels(EnvConformance):
    """`test_env.py` plays the levels; the sweep checks them."""

    env_id = "vlgym/SokobanDrawn-v0"
    checks = ("recorded", "state", "reset_options")

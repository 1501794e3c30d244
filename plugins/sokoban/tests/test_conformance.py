"""The whole contract by default, a part of it with difficulty levels."""

from vlgym.testing import EnvConformance


class TestDrawnLevels(EnvConformance):
    env_id = "vlgym/Sokoban-v0"


class TestDifficultyLevels(EnvConformance):
    """`test_drawn.py` plays the levels; the sweep checks them."""

    env_id = "vlgym/SokobanDrawn-v0"
    checks = ("recorded", "state", "reset_options")

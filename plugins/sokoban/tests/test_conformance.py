"""The whole contract by default, parts of it with levels and with other rules."""

from __future__ import annotations

from typing import Any, ClassVar

from vlgym.testing import EnvConformance


class TestDrawnLevels(EnvConformance):
    env_id = "vlgym/Sokoban-v0"


class TestDifficultyLevels(EnvConformance):
    """`test_drawn.py` plays the levels; the sweep checks them."""

    env_id = "vlgym/SokobanDrawn-v0"
    checks = ("recorded", "state", "reset_options")


class TestOwnSizeWithRestart(EnvConformance):
    env_id = "vlgym/Sokoban-v0"
    env_kwargs: ClassVar[dict[str, Any]] = {
        "rows": 6, "columns": 8, "boxes": 1, "restart": True, "action_set": "gym",
        "modality": "both", "image_size": (84, 112),
    }  # fmt: skip
    checks = ("gymnasium", "values", "picture", "determinism", "state", "parsers", "prompt", "turn_limit")

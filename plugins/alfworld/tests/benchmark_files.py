"""Write games in the benchmark's format."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from vlgym_alfworld.generator import draw_game


def write_game(root: Path, split: str, seed: int, task: str, trial: str = "trial_T0", **changes: Any) -> Path:
    """Write `game.tw-pddl` and `traj_data.json` of a generated game; `changes` replace keys of the game file."""
    game = draw_game(np.random.default_rng(seed), task, seen=split != "valid_unseen")
    folder = root / "json_2.1.1" / split / changes.pop("folder", game.name) / trial
    folder.mkdir(parents=True)
    trajectory = {
        "task_type": task,
        "task_id": trial,
        "pddl_params": {
            "object_target": game.goal.thing, "parent_target": game.goal.parent, "toggle_target": game.goal.toggle,
            "mrecep_target": "", "object_sliced": False,
        },
        "scene": {"floor_plan": f"FloorPlan{game.scene}", "scene_num": game.scene},
    }  # fmt: skip
    (folder / "traj_data.json").write_text(json.dumps(trajectory))
    data = {**game.data(), "walkthrough": ["look"], **changes}
    (folder / "game.tw-pddl").write_text(
        json.dumps({key: value for key, value in data.items() if value != "leave out"})
    )
    return folder

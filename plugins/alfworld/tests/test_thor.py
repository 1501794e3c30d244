"""The AI2-THOR backend: it names what is missing, and drives the simulator's interface.

The simulator is a stand-in here: the Unity build cannot be had by pip.
"""

import random
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from benchmark_files import write_game
from vlgym_alfworld import benchmark, thor
from vlgym_alfworld.game import TASKS

import vlgym  # noqa: F401


class Camera:
    """Stands in for the simulator's engine: a red frame, two goal conditions."""

    def __init__(self) -> None:
        self.met = 0
        self.stopped = False
        frame = np.zeros((300, 300, 3), np.uint8)
        frame[..., 0] = 200
        self.last_event = type("Event", (), {"frame": frame})()

    def get_goal_conditions_met(self) -> tuple[int, int]:
        return self.met, 2

    def stop(self) -> None:
        self.stopped = True


class Simulator:
    """Has the methods of `AlfredThorEnv.Thor` that the backend uses; prints and draws like it."""

    def __init__(self) -> None:
        self.env = Camera()
        self.files: list[str] = []
        self.said = ""

    def reset(self, file: str) -> None:
        self.files.append(file)
        print("Resetting ThorEnv")
        self.said = f"You are in a room. {random.random()}"

    def step(self, command: str) -> None:
        print(command)
        self.env.met += command.startswith("take")
        self.env.met += command.startswith("use")
        self.said = f"You {command}."

    def get_results(self) -> tuple[Any, ...]:
        return (
            self.said,
            False,
            ["look", "take pen 1 from desk 1", "use desklamp 1"],
            self.env.met == 2,
            self.env.met / 2,
            [],
        )


def test_frames_commands_and_conditions_come_from_the_simulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    folder = write_game(tmp_path, "train", 1, TASKS[1])
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    benchmark._list_games.cache_clear()
    simulator = Simulator()
    monkeypatch.setattr(thor, "missing_parts", list)
    monkeypatch.setattr(thor, "_make_simulator", lambda: simulator)
    env = gymnasium.make("vlgym/ALFWorld-v0", backend="thor", image_size=(300, 300)).unwrapped
    before = random.getstate()
    observation, info = env.reset(seed=0)
    assert simulator.files == [str(folder / "traj_data.json")]
    assert (observation["image"] == (200, 0, 0)).all()
    assert info["vlgym"]["legal_actions"] == ["look", "take pen 1 from desk 1", "use desklamp 1"]
    _, reward, terminated, _, _ = env.step("<action>take pen 1 from desk 1</action>")
    assert (reward, terminated) == (1.0, False)
    _, reward, terminated, _, info = env.step("<action>use desklamp 1</action>")
    assert (reward, terminated) == (51.0, True)
    assert info["score"] == 1.0
    assert random.getstate() == before
    assert capsys.readouterr().out == ""
    env.close()
    assert simulator.env.stopped

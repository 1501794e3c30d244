"""AI2-THOR: ALFWorld's own first-person frames, where the simulator is installed.

It needs parts that PyPI does not bring: the Unity build of 2019, an X display, and the benchmark's
trajectory files. `ThorBackend` names all that are missing. It drives one simulator of `alfworld`'s
`AlfredThorEnv` directly, without its threads and its choice of games.
"""

import contextlib
import importlib.util
import io
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlgym.env.rendering import fit_image
from vlgym.errors import MissingSystemPartError

from .benchmark import FOLDER, TRAJECTORY
from .game import Game
from .oracle import Advice
from .package import VARIABLE, data_folder, import_quietly

BUILD = "thor-201909061227-Linux64"  # the Unity build that ai2thor 2.1.0 starts
SCREEN = 300  # side of the simulator's frames in the published set-up, pixels


def missing_parts() -> list[str]:
    """Return the parts that AI2-THOR lacks here, each with the way to fix it."""
    modules = ("ai2thor", "cv2", "torch", "torchvision", "pandas")
    lacking = [module for module in modules if importlib.util.find_spec(module) is None]
    parts = []

    # Each part has its way to come.
    if lacking:
        parts.append(f"Python modules {', '.join(lacking)} (pip install 'alfworld[vis]')")
    build = Path("~/.ai2thor/releases").expanduser() / BUILD / BUILD
    if not build.is_file():
        fix = "ai2thor 2.1.0 downloads it at its first start, from its S3 bucket"
        parts.append(f"the Unity build {build} ({fix})")
    if not os.environ.get("DISPLAY"):
        fix = "set DISPLAY, or apt-get install xvfb and start under xvfb-run"
        parts.append(f"an X display with OpenGL ({fix})")
    data = data_folder() / FOLDER
    if not any(data.glob(f"*/*/*/{TRAJECTORY}")):
        parts.append(f"the benchmark's trajectories in {data} (alfworld-download, and set {VARIABLE})")
    return parts


class ThorBackend:
    """A game in AI2-THOR, with frames of `size`; a `MissingSystemPartError` names all that is missing."""

    def __init__(self, size: tuple[int, int]) -> None:
        if parts := missing_parts():
            raise MissingSystemPartError(
                f"backend='thor' needs AI2-THOR; missing here: {'; '.join(parts)}. "
                "The drawn backend (the default) needs none of it."
            )
        self._size = size
        self._simulator: Any = None
        self._random = random.Random(0)
        self.feedback, self.commands, self.won = "", list[str](), False
        self._met, self._of = 0, 1

    def open(self, game: Game, tag_seed: int | None = None) -> None:
        """Load a benchmark game and start it; objects keep the simulator's names."""
        with self._contained():
            if self._simulator is None:
                self._simulator = _make_simulator()
            self._simulator._done = False
            self._simulator.reset(str(Path(game.file).with_name(TRAJECTORY)))
        self._take()

    def command(self, command: str) -> None:
        """Execute an admissible command."""
        with self._contained():
            self._simulator.step(command)
        self._take()

    def conditions(self) -> tuple[bool, ...]:
        """Return as many `True` as the simulator counts met conditions; it does not say which."""
        return tuple(index < self._met for index in range(self._of))

    def frame(self) -> NDArray[np.uint8]:
        """Return the simulator's frame, RGB."""
        frame = np.ascontiguousarray(self._simulator.env.last_event.frame)
        return fit_image(frame.astype(np.uint8), self._size)

    def advise(self, *, seeking: bool) -> Advice | None:
        """The simulator has no oracle."""
        return None

    def close(self) -> None:
        """Stop the simulator."""
        if self._simulator is not None:
            with self._contained():
                self._simulator.env.stop()
            self._simulator = None

    def _take(self) -> None:
        feedback, _, commands, won, _, _ = self._simulator.get_results()
        self.feedback, self.won = str(feedback).strip(), bool(won)
        self.commands = sorted(set(commands))
        met, of = self._simulator.env.get_goal_conditions_met()
        self._met, self._of = int(met), int(of)

    @contextlib.contextmanager
    def _contained(self) -> Iterator[None]:
        """Keep in the simulator's printing, and its draws from the global generator."""
        state = random.getstate()
        random.setstate(self._random.getstate())
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            self._random.setstate(random.getstate())
            random.setstate(state)


def _make_simulator() -> Any:
    module = import_quietly("alfworld.agents.environment.alfred_thor_env")
    simulator = module.AlfredThorEnv.Thor(None, "eval")
    camera = {
        "screen_height": SCREEN, "screen_width": SCREEN, "smooth_nav": False,
        "save_frames_to_disk": False, "save_frames_path": "",
    }  # fmt: skip
    simulator.init_env({
        "env": {"thor": camera, "goal_desc_human_anns_prob": 0},
        "controller": {"type": "oracle", "load_receps": True, "debug": False},
        "general": {"training_method": "dqn"},
        "rl": {"training": {"max_nb_steps_per_episode": 1_000_000}},
    })  # fmt: skip
    return simulator

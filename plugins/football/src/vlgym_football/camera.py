"""The engine's own camera: 3-D frames, drawn off the screen through EGL.

One graphics engine serves the process (it takes seconds to start and half a gigabyte); it shows
states that another engine has played. A missing driver ends the process inside the engine, so the
first use in a process tries it in another process.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlgym.errors import MissingSystemPartError

from .engine import Engine, load_library, make_config, start_game
from .scenario import Scenario, get_scenario

RESOLUTION = (640, 360)  # width and height of the engine's frames, in pixels
PROBE_SECONDS = 300


def require_camera() -> None:
    """Check once in this process, by trying in another one, that the camera works."""
    if finding := probe_camera():
        raise MissingSystemPartError(
            f"The engine's camera does not work here ({finding}). It needs EGL and an OpenGL driver: apt-get "
            'install -y libegl1 libegl-mesa0 libgl1-mesa-dri. Or take the drawn view: view="tactical".'
        )


@functools.cache
def probe_camera() -> str:
    """Draw one frame in another process; return the problem, or an empty string."""
    command = [sys.executable, "-c", "from vlgym_football.camera import probe_here; probe_here()"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"no frame within {PROBE_SECONDS} seconds"
    if done.returncode == 0:
        return ""
    detail = " ".join((done.stderr + done.stdout).split())[-160:]
    return f"trying it ended with status {done.returncode}: {detail}"


def probe_here() -> None:
    """Draw one frame in this process; end it with a message where the frame is blank."""
    scenario = get_scenario("academy_empty_goal_close")
    engine = Engine()
    engine.begin(scenario, 1)
    if draw_camera(scenario, 1, engine.save()).std() <= 5:
        sys.exit("the frame is blank")


def draw_camera(scenario: Scenario, seed: int, state: bytes) -> NDArray[np.uint8]:
    """Return the camera's view, `[360, 640, 3] uint8`, of a state of this scenario and seed."""
    game = _start_graphics(os.getpid())
    game.reset(make_config(scenario, seed), False)
    game.set_state(state)
    # The first frame after a reset has the camera in a wrong place.
    game.render(False)
    game.render(True)
    width, height = RESOLUTION
    return np.frombuffer(game.get_frame(), np.uint8).reshape(height, width, 3)[::-1].copy()


@functools.cache
def _start_graphics(process: int) -> Any:
    """Return the graphics engine of a process."""
    # With DISPLAY the engine would open a window there; without, it draws off the screen.
    display = os.environ.pop("DISPLAY", None)

    # The engine says on standard output that there is no display.
    saved = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        return start_game(load_library(), RESOLUTION)
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(nowhere)
        if display is not None:
            os.environ["DISPLAY"] = display

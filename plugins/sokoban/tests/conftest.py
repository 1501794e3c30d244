"""The engine of the installed gym-sokoban 0.0.6, as the reference of the differential tests.

Its modules import the old `gym`, `pkg_resources` and `imageio`; stand-ins answer for those.
Rules, rewards and drawing are the package's.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import seeding
from PIL import Image
from vlgym_sokoban.package import find_file


def _module(name: str, **attributes: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(attributes)
    return module


def _read_png(path: str) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


@pytest.fixture(scope="session", name="package_engine")
def load_engine() -> SimpleNamespace:
    """The package's `SokobanEnv` class and its `room_to_rgb` function."""
    folder = find_file("envs/room_utils.py").parent
    stand_ins = {
        "gym": _module("gym", Env=object),
        "gym.utils": _module("gym.utils", seeding=seeding),
        "gym.spaces": _module("gym.spaces", Box=gymnasium.spaces.Box),
        "gym.spaces.discrete": _module("gym.spaces.discrete", Discrete=gymnasium.spaces.Discrete),
        "pkg_resources": _module(
            "pkg_resources", resource_filename=lambda package, path: str(find_file(f"envs/{path}"))
        ),
        "imageio": _module("imageio", imread=_read_png),
        "gym_sokoban": _module("gym_sokoban", __path__=[str(folder.parent)]),
        "gym_sokoban.envs": _module("gym_sokoban.envs", __path__=[str(folder)]),
    }
    replaced = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        engine = importlib.import_module("gym_sokoban.envs.sokoban_env")
        drawing = importlib.import_module("gym_sokoban.envs.render_utils")
    finally:
        for name in [name for name in sys.modules if name.startswith("gym_sokoban")]:
            del sys.modules[name]
        for name, module in replaced.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
    return SimpleNamespace(SokobanEnv=engine.SokobanEnv, room_to_rgb=drawing.room_to_rgb)

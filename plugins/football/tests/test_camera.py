"""The engine's camera: its picture, and a missing driver that harms nobody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from vlgym_football import engine

from vlgym.errors import MissingSystemPartError
from vlgym.registry.making import make


def test_the_camera_shows_the_pitch_and_is_reproducible(tmp_path: Path) -> None:
    """Another process films, so that this one keeps a small engine."""
    code = (
        "import numpy as np, sys\nfrom vlgym_football import engine\n"
        "from vlgym.registry.making import make\n"
        "engine.probe_here()\nengine.probe_camera = str  # one graphics engine is enough\n"
        "env = make('vlgym/Football-v0', scenario='R6_R_1', view='camera')\nframes = []\n"
        "for _ in range(2):\n    frames.append(env.reset(seed=3)[0]['image'])\n"
        "frames.append(env.step('<action>right</action>')[0]['image'])\n"
        "np.save(sys.argv[1], np.stack(frames))\n"
    )
    path = tmp_path / "frames.npy"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    first, again, later = np.load(path)
    assert first.shape == (360, 640, 3)
    red, green, blue = np.moveaxis(first.astype(int), -1, 0)
    assert ((green > red + 10) & (green > blue + 10)).mean() > 0.4
    assert np.array_equal(first, again)
    assert not np.array_equal(first, later)
    assert done.stdout == ""


def test_a_missing_driver_is_reported_and_kills_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    engine.probe_camera.cache_clear()
    # A driver that does not exist ends the trying process inside the engine.
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nowhere.json")
    try:
        with pytest.raises(MissingSystemPartError, match="libegl-mesa0"):
            make("vlgym/Football-v0", view="camera")
    finally:
        engine.probe_camera.cache_clear()

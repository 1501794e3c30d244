"""Both views: what is drawn where, and a missing driver that harms nobody."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from vlgym_football import camera
from vlgym_football.engine import Snapshot
from vlgym_football.pitch import MINE, OURS, THEIRS, WHITE, PitchPainter

from vlgym.errors import MissingSystemPartError
from vlgym.registry.making import make

Make = Callable[..., Snapshot]


def draw(painter: PitchPainter, now: Snapshot) -> np.ndarray:
    """Draw without sticky commands."""
    return painter.draw(now, frame_limit=400, sprint=False, dribble=False)


def near(
    picture: np.ndarray, painter: PitchPainter, place: tuple[float, float], colour: tuple[int, int, int], reach: float
) -> int:
    """Count pixels of (nearly) a colour within `reach` radii of a place."""
    x, y = painter.pixel(np.array(place))
    rows, columns = np.mgrid[: picture.shape[0], : picture.shape[1]]
    inside = np.hypot(columns - x, rows - y) <= reach * painter.radius
    alike = np.abs(picture.astype(int) - np.array(colour)).max(axis=2) < 40
    return int((inside & alike).sum())


def test_players_stand_where_they_are_in_their_colours(snapshot: Make) -> None:
    painter = PitchPainter(336, 448)
    now = snapshot()
    picture = draw(painter, now)
    assert picture.shape == (336, 448, 3)
    for index, (x, y) in enumerate(now.left):
        assert near(picture, painter, (x, y), OURS, 1.0) > 40, index
    for index, (x, y) in enumerate(now.right):
        assert near(picture, painter, (x, y), THEIRS, 1.0) > 40, index


def test_a_red_ring_marks_the_player_and_a_white_one_the_owner_if_another(snapshot: Make) -> None:
    painter = PitchPainter(336, 448)
    mine = draw(painter, snapshot(owner_team=1, owner=1, controlled=2, ball=(0.5, 0.0)))
    assert near(mine, painter, (0.2, 0.2), MINE, 1.5) > 20
    assert near(mine, painter, (0.0, 0.0), MINE, 1.5) == 0
    assert near(mine, painter, (0.5, 0.0), WHITE, 1.5) > near(mine, painter, (0.6, -0.3), WHITE, 1.5) + 20


def test_the_camera_shows_the_pitch_and_is_reproducible(tmp_path: Path) -> None:
    """Another process films, so that this one keeps a small engine."""
    code = (
        "import numpy as np, sys\nfrom vlgym.registry.making import make\n"
        "env = make('vlgym/Football-v0', scenario='R6_R_1', view='camera')\nframes = []\n"
        "for _ in range(2):\n    frames.append(env.reset(seed=3)[0]['image'])\n"
        "frames.append(env.step('<action>right</action>')[0]['image'])\n"
        "np.save(sys.argv[1], np.stack(frames))\n"
    )
    path = tmp_path / "frames.npy"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    frames = list(np.load(path))
    assert frames[0].shape == (360, 640, 3)
    green = (frames[0][..., 1] > frames[0][..., 0] + 10) & (frames[0][..., 1] > frames[0][..., 2] + 10)
    assert green.mean() > 0.4
    assert np.array_equal(frames[0], frames[1])
    assert not np.array_equal(frames[0], frames[2])
    assert done.stdout == ""


def test_a_missing_driver_is_reported_and_kills_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    camera.probe_camera.cache_clear()
    # A driver that does not exist ends the trying process inside the engine.
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nowhere.json")
    try:
        with pytest.raises(MissingSystemPartError, match="libegl-mesa0"):
            make("vlgym/Football-v0", view="camera")
    finally:
        camera.probe_camera.cache_clear()

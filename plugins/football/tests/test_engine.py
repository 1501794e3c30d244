"""The real engine: bit-identical matches, exact restoring, refused garbage, and its camera."""

import base64
import copy
import hashlib
import json
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from vlgym_football import engine
from vlgym_football.engine import ENGINE_CODES, Engine, Snapshot, load_library, make_config
from vlgym_football.match import Match
from vlgym_football.scenario import ROLES, get_scenario

from vlgym.errors import MissingSystemPartError, UserError
from vlgym.registry.making import make


@pytest.fixture
def match() -> Iterator[Callable[..., Match]]:
    """Begin matches, `match("R5_P_1", 3)`; all are closed afterwards."""
    made: list[Match] = []

    def begin(name: str, seed: int, **kwargs: object) -> Match:
        made.append(Match(**kwargs))
        made[-1].begin(get_scenario(name), seed)
        return made[-1]

    yield begin
    for one in made:
        one.engine.close()


def digest(now: Snapshot) -> str:
    """Return a hash of every bit of a snapshot's places and velocities."""
    parts = (now.ball, now.ball_velocity, now.left, now.left_velocity, now.right, now.right_velocity)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def play(engine: Engine, name: str, seed: int, frames: int = 30) -> str:
    """Play codes of a fixed generator; return a hash of all frames."""
    codes = np.random.default_rng(5).integers(0, 13, size=frames).tolist()
    hashes = [digest(engine.begin(get_scenario(name), seed)), *(digest(engine.advance(code)) for code in codes)]
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


_OTHER = (
    "import sys; sys.path.insert(0, {folder!r})\nfrom test_engine import Engine, play\n"
    "engine = Engine()\nplay(engine, 'academy_corner', 9, 5)\nprint('HASH', play(engine, 'R5_T_2', 11))\n"
    "print('OLD', sorted(set(sys.modules) & {{'gym', 'gfootball', 'absl', 'cv2', 'pygame'}}))\n"
)


def test_action_names_and_roles_are_the_engines() -> None:
    library = load_library()
    codes = {value.name: number for number, value in library.e_BackendAction.values.items()}
    assert codes == ENGINE_CODES
    roles = [library.e_PlayerRole.values[i].name.removeprefix("e_PlayerRole_") for i in range(len(ROLES))]
    assert roles == list(ROLES)


def test_the_engine_gets_the_rules_and_the_lazy_players_of_a_scenario() -> None:
    lazy = get_scenario("academy_single_goal_versus_lazy")
    config = make_config(replace(lazy, left_difficulty=0.2, right_difficulty=0.7, second_half=9), 7)
    skills = (config.left_team_difficulty, config.right_team_difficulty)
    assert skills == pytest.approx((0.2, 0.7))
    assert (config.game_duration, config.second_half) == (lazy.duration, 9)
    assert [p.lazy for p in config.right_team] == [p.lazy for p in lazy.right]


def test_a_player_who_holds_up_a_goal_kick_is_hurried() -> None:
    one = Engine()
    one.begin(get_scenario("1_vs_1_easy"), 1)
    modes = [one.advance(ENGINE_CODES["idle"]).mode for _ in range(200)]
    one.close()
    assert 20 < sum(mode != 0 for mode in modes) < 30


def test_matches_are_bit_identical_in_another_process_and_after_another_history() -> None:
    engine = Engine()
    here = play(engine, "R5_T_2", 11)
    assert play(engine, "R5_T_2", 12) != here
    assert play(engine, "R5_T_2", 11) == here
    engine.close()
    code = _OTHER.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert f"HASH {here}" in done.stdout
    assert "OLD []" in done.stdout


def test_sprint_and_dribble_stick_until_released(match: Callable[..., Match]) -> None:
    begun = match("academy_run_to_score", 1)
    for action, on in (
        ("sprint", ["right", "sprint"]),
        ("right", ["right", "sprint"]),
        ("dribble", ["right", "sprint", "dribble"]),
        ("release_sprint", ["right", "dribble"]),
        ("release_dribble", ["right"]),
    ):
        begun.play(action)
        assert begun.engine.commands() == on


def test_a_restored_match_goes_on_bit_for_bit(match: Callable[..., Match]) -> None:
    first = match("R6_T_3", 8)
    for action in ("right", "sprint", "top_right"):
        first.play(action)
    state = json.loads(json.dumps(first.save()))
    second = match("academy_corner", 2, start="published")  # whose start notes nothing of its own
    second.load(state)
    assert second.save() == state
    assert digest(second.now) == digest(first.now)
    for action in ("right", "right", "short_pass", "shot"):
        assert first.play(action) == second.play(action)
        assert digest(first.now) == digest(second.now)
        if first.ending:
            break
    assert first.meter == second.meter


def test_foreseeing_tells_what_comes_and_changes_nothing(match: Callable[..., Match]) -> None:
    begun = match("R6_T_3", 8)
    begun.play("right")
    before = json.dumps(begun.save())
    reward, ending, now = begun.foresee(["top_right", "short_pass"])
    assert json.dumps(begun.save()) == before
    paid = begun.play("top_right").reward
    played = begun.play("short_pass")
    assert (reward, ending) == (pytest.approx(paid + played.reward), played.ending)
    assert digest(now) == digest(begun.now)


def test_garbage_is_refused_before_it_reaches_the_engine(match: Callable[..., Match]) -> None:
    begun = match("academy_empty_goal", 1)
    state = begun.save()
    cut = state["engine"][: len(state["engine"]) // 8 * 4]
    for key, value, words in (
        ("mark", "2.10.1-0123456789abcdef", "one build of the engine"),
        ("engine", cut, "cut off"),
        ("engine", base64.b64encode(zlib.compress(bytes(2_000_000))).decode(), "too large"),
        ("engine", "%%%", "no engine state"),
        ("engine", base64.b64encode(b"not compressed").decode(), "no engine state"),
    ):
        with pytest.raises(UserError, match=words):
            begun.load(copy.deepcopy(state) | {key: value})
    begun.play("right")


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
    stands, left, below = first[:90, -90:], first[:90, :90], first[-90:, -90:]
    assert stands.mean() > 1.5 * max(left.mean(), below.mean())  # behind the goal
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

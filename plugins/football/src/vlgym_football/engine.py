"""The Google Research Football engine, driven directly: one match, one frame at a time.

No part of the Python package `gfootball` runs (it needs the unmaintained `gym`); this module does
the work of its `FootballEnvCore`: settle the ball, wait while it is out of play, hurry an agent
that holds up the game. Actions are engine codes (`e_BackendAction`).

The engine starts at first use. It cannot be shut down cleanly, so engines of closed environments
serve again, in the process and thread that started them (a forked child starts its own).

The engine's own camera draws 3-D frames off the screen through EGL. One graphics engine serves the
process (it takes seconds to start and half a gigabyte); it shows states that another engine has
played. A missing driver ends the process inside the engine, so the first use in a process tries it
in another process.
"""

import functools
import hashlib
import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlgym.errors import MissingSystemPartError, UserError

from .build import COMMAND, find_engine, require_engine
from .scenario import ROLES, Scenario, get_scenario

DIRECTIONS = ("left", "top_left", "top", "top_right", "right", "bottom_right", "bottom", "bottom_left")
PASSES = ("long_pass", "high_pass", "short_pass")
SHOT = "shot"
IDLE = "idle"
BUILTIN_AI = "builtin_ai"

# Name -> value of `e_BackendAction` in gfootball 2.10.2 (a test compares both).
_KICKS = (*PASSES, SHOT, "keeper_rush", "sliding", "pressure", "team_pressure", "switch", "sprint", "dribble")
_RELEASES = ("release_direction", *(f"release_{name}" for name in _KICKS))
ENGINE_CODES = {name: code for code, name in enumerate((IDLE, *DIRECTIONS, *_KICKS, *_RELEASES, BUILTIN_AI))}

# `16`: MageBench's program. `18`: the number of its paper. `19`: gfootball's default set.
_SIXTEEN = (*DIRECTIONS, *PASSES, SHOT, "sprint", "release_sprint", "dribble", "release_dribble")
ACTION_SETS: dict[str, tuple[str, ...]] = {
    "16": _SIXTEEN,
    "18": (*_SIXTEEN, "sliding", "release_direction"),
    "19": (*_SIXTEEN, "sliding", "release_direction", IDLE),
}

# Ordered -> executed, with `action_mix_up`: MageBench numbers its actions by gfootball's set `v2`
# and opens the game with the set `full`, which differ in development versions (docs/football.md).
MAGEBENCH_MIX_UP: dict[str, str] = {
    "sprint": "keeper_rush",
    "release_direction": "sliding",
    "release_sprint": "pressure",
    "sliding": "team_pressure",
    "dribble": "switch",
    "release_dribble": "sprint",
    BUILTIN_AI: "dribble",
}
STICKY = ("sprint", "dribble")  # they stay on until released, as directions do
MEANINGS: dict[str, str] = {
    "long_pass": "pass far, to a team-mate chosen by your running direction",
    "high_pass": "pass through the air",
    "short_pass": "pass on the ground to a near team-mate",
    SHOT: "shoot at the opponents' goal",
    "sprint": "run faster from now on, with less control of the ball",
    "release_sprint": "stop sprinting",
    "dribble": "guard the ball from now on, running slower",
    "release_dribble": "stop dribbling",
    "sliding": "sliding tackle",
    "release_direction": "stop running",
    IDLE: "change nothing",
}


def engine_code(name: str, mix_up: bool) -> int:
    """Return the engine's code for an action word; with `mix_up` MageBench's."""
    return ENGINE_CODES[MAGEBENCH_MIX_UP.get(name, name) if mix_up else name]


def explain_actions(names: Sequence[str]) -> str:
    """Return the meanings of action words in one line; directions need none."""
    return "; ".join(f"{name}: {MEANINGS[name]}" for name in names if name in MEANINGS)


PHYSICS_STEPS = 10  # of 10 ms in a frame: ten frames are a second
LONGEST_WAIT = 2000  # frames after which the ball must be in play
HURRY_AT = 20  # frames out of play after which the engine restarts the game, as in the package
_IDLE, _LEFT, _RIGHT, _SHORT_PASS = (ENGINE_CODES[name] for name in ("idle", "left", "right", "short_pass"))
_free: dict[int, list[Any]] = {}


@dataclass(frozen=True)
class Snapshot:
    """State of one frame, in pitch coordinates (see `scenario.py`) and the same per frame."""

    frame: int  # frames played
    ball: NDArray[np.float64]  # [3]: x, y, and height in metres
    ball_velocity: NDArray[np.float64]
    left: NDArray[np.float64]  # [n, 2], our players
    left_velocity: NDArray[np.float64]
    left_active: NDArray[np.bool_]  # [n], false for a player sent off
    right: NDArray[np.float64]  # [m, 2], the opponents
    right_velocity: NDArray[np.float64]
    right_active: NDArray[np.bool_]
    owner_team: int  # 0 we have the ball, 1 the opponents, -1 nobody
    owner: int  # index of the player who has it, -1 nobody
    controlled: int  # index of our player who obeys the agent
    score: tuple[int, int]  # our goals, and theirs
    mode: int  # 0 normal play, else a standstill, as a corner or a throw-in
    agents: tuple[int, ...] = ()  # index of each agent's player

    def owner_motion(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return place and velocity of the player who has the ball."""
        if self.owner_team == 0:
            return self.left[self.owner], self.left_velocity[self.owner]
        return self.right[self.owner], self.right_velocity[self.owner]


class Engine:
    """One engine, started by the first `begin`; `close` keeps it for others."""

    def __init__(self) -> None:
        self._game: Any = None
        self._last: Snapshot

    def begin(self, scenario: Scenario, seed: int, agents: int = 1) -> Snapshot:
        """Start a scenario, up to play. The same seed gives the same match, bit for bit.

        One agent always gets the player at the ball. As many agents as our controllable players
        have a player each, the same one all the time.
        """
        if self._game is None:
            spare = _free.setdefault(os.getpid(), [])
            self._game = spare.pop() if spare else start_game(load_library())
        self._game.reset(make_config(scenario, seed, agents), False)
        self._game.waiting_for_game_count = 0
        self._last = self._wait_for_play()
        return self._last

    def advance(self, code: int) -> Snapshot:
        """Play one frame with an engine code for our controlled player."""
        waited = self._game.waiting_for_game_count
        if waited == HURRY_AT:
            code = _SHORT_PASS
        elif waited > HURRY_AT:
            holds = self._last.owner_team == 0 and self._last.owner == self._last.controlled
            code = (_RIGHT if waited < 30 else _LEFT) if holds else _IDLE
        self.advance_together([code])
        self._game.waiting_for_game_count = waited + 1 if self._last.mode else 0
        return self._last

    def advance_together(self, codes: Sequence[int]) -> Snapshot:
        """Play one frame with an engine code for every agent's player. Nobody is hurried."""
        for agent, code in enumerate(codes):
            self._game.perform_action(code, True, agent)
        self._game.step()
        self._last = self._wait_for_play()
        return self._last

    def press(self, code: int, agent: int = 0) -> None:
        """Give an agent's player an engine code without playing a frame."""
        self._game.perform_action(code, True, agent)

    def holds(self, name: str, agent: int = 0) -> bool:
        """True if a sticky command (`sprint`, `dribble`, a direction) is on for a player."""
        return bool(self._game.sticky_action_state(ENGINE_CODES[name], True, agent))

    def commands(self, agent: int = 0) -> list[str]:
        """Return the sticky commands that are on for an agent's player."""
        return [name for name in (*DIRECTIONS, *STICKY) if self.holds(name, agent)]

    def save(self) -> bytes:
        """Return the engine's state, for the same scenario and build of the engine."""
        return self._game.get_state("")

    def restore(self, state: bytes, known: Snapshot | None = None) -> Snapshot:
        """Take back a state of `save` (with its snapshot); foreign bytes end the process."""
        self._game.set_state(state)
        self._last = known if known is not None else read_snapshot(self._game.get_info())
        return self._last

    def close(self) -> None:
        """Keep the engine for the next environment of this process."""
        if self._game is not None:
            _free.setdefault(os.getpid(), []).append(self._game)
            self._game = None

    def _wait_for_play(self) -> Snapshot:
        for _ in range(LONGEST_WAIT):
            info = self._game.get_info()
            if info.is_in_play:
                return read_snapshot(info)
            self._game.step()
        raise UserError(
            f"The engine did not bring the ball into play within {LONGEST_WAIT} frames; check the scenario's places."
        )


def load_library() -> Any:
    """Import the engine."""
    require_engine()
    try:
        return importlib.import_module("gfootball_engine")
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"The football engine does not load: {reason}. Build it again: {COMMAND} --rebuild") from error


@functools.cache
def engine_mark() -> str:
    """Return version and hash of the engine's build, to which a saved state belongs."""
    library = load_library()
    folder = Path(library.__file__).parent
    program = next(iter(sorted(folder.glob("_gameplayfootball*.so"))), Path(library.__file__))
    return f"{find_engine()}-{hashlib.sha256(program.read_bytes()).hexdigest()[:16]}"


def start_game(library: Any, render: tuple[int, int] | None = None) -> Any:
    """Start an engine, with graphics of `render` = (width, height) pixels or without any."""
    game = library.GameEnv()
    game.game_config.physics_steps_per_frame = PHYSICS_STEPS
    game.game_config.render = render is not None
    if render is not None:
        game.game_config.render_resolution_x, game.game_config.render_resolution_y = render
    game.start_game()
    game.state = library.GameState.game_running
    return game


def make_config(scenario: Scenario, seed: int, agents: int = 1) -> Any:
    """Return the engine's form of a scenario, fresh for each reset, which changes it."""
    library = load_library()
    config = library.ScenarioConfig.make()
    config.ball_position[0], config.ball_position[1] = scenario.ball

    # The engine takes the right team in that team's own direction: a half turn of the pitch.
    teams = ((config.left_team, scenario.left, 1.0), (config.right_team, scenario.right, -1.0))
    for team, players, sign in teams:
        for p in players:
            role = library.e_PlayerRole.values[ROLES.index(p.role)]
            team.append(library.FormationEntry(sign * p.x, sign * p.y, role, p.lazy, p.controllable))

    # The rules.
    config.game_duration = scenario.duration
    config.left_team_difficulty = scenario.left_difficulty
    config.right_team_difficulty = scenario.right_difficulty
    config.offsides = scenario.offsides
    config.end_episode_on_score = scenario.end_on_score
    config.end_episode_on_out_of_play = scenario.end_on_out_of_play
    config.end_episode_on_possession_change = scenario.end_on_possession_change
    config.deterministic = scenario.deterministic
    if scenario.second_half is not None:
        config.second_half = scenario.second_half

    # The seed decides the engine's luck, and which team it handles first.
    if not scenario.deterministic:
        config.game_engine_random_seed = seed
        config.reverse_team_processing = bool(seed % 2)
    config.left_agents, config.right_agents = agents, 0
    return config


def read_snapshot(info: Any) -> Snapshot:
    ball, pace = info.ball_position, info.ball_direction
    left, left_velocity, left_active = _read_team(info.left_team)
    right, right_velocity, right_active = _read_team(info.right_team)
    return Snapshot(
        frame=int(info.step), ball=np.array([ball[0], ball[1], ball[2]]),
        ball_velocity=np.array([pace[0], pace[1], pace[2]]),
        left=left, left_velocity=left_velocity, left_active=left_active,
        right=right, right_velocity=right_velocity, right_active=right_active,
        owner_team=int(info.ball_owned_team), owner=int(info.ball_owned_player),
        controlled=int(info.left_controllers[0].controlled_player),
        agents=tuple(int(c.controlled_player) for c in info.left_controllers if c.controlled_player != -1),
        score=(int(info.left_goals), int(info.right_goals)), mode=int(info.game_mode),
    )  # fmt: skip


def _read_team(players: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    rows = [(*(p.position[0], p.position[1]), *(p.direction[0], p.direction[1])) for p in players]
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return table[:, :2].copy(), table[:, 2:].copy(), np.array([p.is_active for p in players], dtype=bool)


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
    """Draw a frame in another process; return the problem, or an empty string."""
    command = [sys.executable, "-c", "from vlgym_football.engine import probe_here; probe_here()"]
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

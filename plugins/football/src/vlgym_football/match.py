"""Episodes of one agent (`Match`) or several (`TeamMatch`): engine, endings, decisions."""

import base64
import binascii
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from vlgym.errors import UserError, VlgymError

from .engine import BUILTIN_AI, DIRECTIONS, ENGINE_CODES, IDLE, PASSES, SHOT, Engine, Snapshot, engine_code, engine_mark
from .reward import RewardMeter
from .scenario import Scenario, distance

RUN_FRAMES = 10
MEETING = 0.01  # distance in pitch coordinates at which two players meet
LOOK_AHEAD, EDGE_AHEAD = 5, 3  # frames for which meetings, and the pitch's edge, are foreseen
LONGEST_PASS = 400  # frames after which a pass that nobody gets gives control back

Frames = Generator[str, Snapshot, None]


@dataclass
class DecisionMaker:
    """Turns replies into frames, so that models decide at decision points (after MageBench).

    `published` is MageBench's program frame for frame: the first reply's direction is forgotten, a
    frame of the direction follows every pass or shot even once the ball is away, and an opponent's
    ball is sought at our player of the same index.
    """

    previous_action: str = ""
    direction: str = "right"
    started: bool = False
    published: bool = False

    def frames(self, action: str, now: Snapshot) -> Frames:
        """Yield the frames' actions; each `send` brings the snapshot after the frame."""
        if action in DIRECTIONS and (self.started or not self.published):
            self.direction = action
        if not self.started:
            self.started = True
            yield action
            return

        # A repeated direction runs on, a kick plays until the ball has an owner.
        again = action == self.previous_action
        self.previous_action = action
        if action in DIRECTIONS and again:
            yield from self._run(action)
        elif (action in PASSES or action == SHOT) and now.owner_team != -1:
            yield from self._pass(action, now)
        else:
            yield action

    def _run(self, action: str) -> Frames:
        for _ in range(RUN_FRAMES):
            now = yield action
            lost = self.published and now.owner_team == 1
            if not can_run_on(replace(now, owner_team=0) if lost else now):
                return

    def _pass(self, action: str, now: Snapshot) -> Frames:
        passer = now.owner
        for _ in range(LONGEST_PASS):
            if now.owner == passer:
                now = yield action
                if now.owner == passer or self.published:
                    now = yield self.direction
            elif now.owner == -1:
                now = yield BUILTIN_AI
            else:
                return


def can_run_on(now: Snapshot) -> bool:
    """True if the ball or its owner stays on the pitch and meets no opponent in the next frames."""
    if now.owner_team == -1:
        place, pace = now.ball[:2], now.ball_velocity[:2]
    else:
        place, pace = now.owner_motion()
    x, y = place + EDGE_AHEAD * pace
    if not (abs(x) < 1.0 and abs(y) < 0.42):
        return False
    steps = np.arange(LOOK_AHEAD + 1)[:, None, None]
    gaps = (place + steps * pace) - (now.right + steps * now.right_velocity)  # [6, opponents, 2]
    return bool(np.all(np.hypot(gaps[..., 0], gaps[..., 1]) >= MEETING))


SETTLE_FRAMES = 10  # most frames at the start in which the ball is taken up
_LARGEST_STATE = 1_000_000


@dataclass(frozen=True)
class Played:
    """Result of one reply: reward, frames played, and the episode's ending or an empty string."""

    reward: float
    frames: int
    ending: str


@dataclass
class Match:
    """A scenario being played; the settings are those of `Football`."""

    start: str = "with_ball"
    release_direction: bool = False
    action_mix_up: bool = False
    decision_points: bool = True
    published: bool = False
    reward: str = "magebench"
    engine: Engine = field(default_factory=Engine)
    ending: str = ""

    now: Snapshot = field(init=False)
    scenario: Scenario = field(init=False)
    seed: int = field(init=False)

    def begin(self, scenario: Scenario, seed: int) -> None:
        """Start a scenario; the engine itself starts at the first call."""
        self.scenario, self.seed = scenario, seed
        self.now = self.engine.begin(scenario, seed)
        self._watch = {"mode": -1, "team": -1}
        if self.start == "with_ball":
            self._take_ball()
        self.ending = ""
        self.meter = RewardMeter(scenario.duration, scenario.end_on_possession_change)
        self.decisions = DecisionMaker(published=self.published)

    def play(self, action: str) -> Played:
        frames = self.decisions.frames(action, self.now)
        wanted, total, count = next(frames), 0.0, 0
        while True:
            total += self._frame(wanted)
            count += 1
            if self.ending or not self.decision_points:
                break
            try:
                wanted = frames.send(self.now)
            except StopIteration:
                break
        return Played(total, count, self.ending)

    def foresee(self, actions: Sequence[str]) -> tuple[float, str, Snapshot]:
        """Play replies on a copy of the match; return reward, ending and the last frame."""
        reward = 0.0
        with _taken_back(self, "meter", "decisions", "_watch", "ending"):
            for action in actions:
                reward += self.play(action).reward
                if self.ending:
                    break
            return reward, self.ending, self.now

    def save(self) -> dict[str, Any]:
        """Return the whole state as JSON-able data."""
        return {
            "scenario": self.scenario.to_dict(),
            "seed": self.seed,
            "engine": base64.b64encode(zlib.compress(self.engine.save(), 1)).decode("ascii"),
            "mark": engine_mark(),
            "ending": self.ending,
            "watch": dict(self._watch),
            "meter": asdict(self.meter),
            "decisions": asdict(self.decisions),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Restore a state of `save`, if it is of this build of the engine."""
        # Foreign bytes would end the process inside the engine.
        if state["mark"] != engine_mark():
            raise UserError(
                f"The match was saved by engine {state['mark']}, but this is {engine_mark()}; a state belongs "
                "to one build of the engine. Restore it where it was saved, or play the episode again from "
                "its seed."
            )
        data = unpack(state["engine"])

        # All parts are read before the running match changes.
        scenario = Scenario.from_dict(state["scenario"])
        meter, decisions = RewardMeter(**state["meter"]), DecisionMaker(**state["decisions"])
        self.begin(scenario, state["seed"])
        self.now = self.engine.restore(data)
        self.meter, self.decisions = meter, decisions
        self._watch = dict(state["watch"])
        self.ending = state["ending"]

    def _take_ball(self) -> None:
        """Run to the right until our player has the ball, which nobody has at first."""
        for _ in range(SETTLE_FRAMES):
            if self.now.owner != -1 or self.now.mode != 0:
                break
            self.now = self.engine.advance(ENGINE_CODES["right"])
            find_end(self.now, self.scenario, self._watch)
        if self.release_direction:
            self.engine.press(ENGINE_CODES["release_direction"])

    def _frame(self, action: str) -> float:
        before = self.now
        self.now = self.engine.advance(engine_code(action, self.action_mix_up))
        reward, stolen = self.meter.pay(self.now, action)
        self.ending = find_end(self.now, self.scenario, self._watch, stolen)
        return count_goals(before, self.now) if self.reward == "scoring" else reward


def count_goals(before: Snapshot, now: Snapshot) -> float:
    """Return our goals less theirs between two frames."""
    return float(now.score[0] - before.score[0] - now.score[1] + before.score[1])


def find_end(now: Snapshot, rules: Scenario, watch: dict[str, int], stolen: bool = False) -> str:
    """Return `goal`, `goal against`, `out of play`, `ball lost` or `time`, or an empty string.

    `watch` holds mode and owning team of the frames before, -1 at first; this frame is noted in it.
    """
    # Play that is left, and an owner that changes, show against the frames before.
    left_play = now.mode != 0 and watch["mode"] == 0
    changed = now.owner_team != -1 and watch["team"] not in (-1, now.owner_team)
    watch["mode"] = now.mode
    if now.owner_team != -1:
        watch["team"] = now.owner_team

    # The first that holds names the ending.
    if rules.end_on_score and any(now.score):
        return "goal" if now.score[0] else "goal against"
    if rules.end_on_out_of_play and left_play:
        return "out of play"
    if stolen or (rules.end_on_possession_change and changed):
        return "ball lost"
    return "time" if now.frame >= rules.duration else ""


def unpack(engine: str) -> bytes:
    """Return the engine's bytes of a saved state; refuse none, and too many."""
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(engine, validate=True), _LARGEST_STATE)
    except (binascii.Error, zlib.error, TypeError, ValueError):
        raise UserError("The saved football match holds no engine state.") from None
    if not unpacker.eof:
        raise UserError("The saved football match is cut off or too large.")
    return data


MOST_PLAYERS = 4  # attackers of a situation, the first of whom has the ball


class TeamMatch:
    """A situation being played. Attackers are numbered from 0; the goalkeeper is the engine's."""

    def __init__(self, frame_skip: int) -> None:
        self.frame_skip = frame_skip
        self.now: Snapshot
        self.scenario: Scenario
        self.ending = ""
        self.engine = Engine()

    def begin(self, scenario: Scenario, seed: int) -> None:
        """Start a situation: the attacker at the ball takes it up, then all stand."""
        agents = len(scenario.left) - 1
        self.scenario, self.ending = scenario, ""
        self.now = self.engine.begin(scenario, seed, agents)
        if self.now.agents != tuple(range(1, agents + 1)):
            raise VlgymError(f"The engine gave the agents the players {self.now.agents}.")

        # At first nobody has the ball.
        self._watch = {"mode": -1, "team": -1}
        taker = min(range(agents), key=lambda one: distance(self.now.left[one + 1], self.now.ball))
        for _ in range(SETTLE_FRAMES):
            if self.now.owner != -1 or self.now.mode != 0:
                break
            self._frame({taker: "right"})
        self.engine.press(ENGINE_CODES["release_direction"], taker)

    def play(self, actions: Mapping[int, str]) -> float:
        """Press each action once, play the decision's frames; return our goals less theirs."""
        before = self.now
        for frame in range(self.frame_skip):
            self._frame(actions if frame == 0 else {})
            if self.ending:
                break
        return count_goals(before, self.now)

    def foresee(self, decide: Callable[[int], Mapping[int, str] | None], decisions: int) -> tuple[str, Snapshot]:
        """Play on a copy of the match; return the ending and the last frame.

        `decide` gets the number of a decision, from 0; `None` looks no further.
        """
        with _taken_back(self, "_watch", "ending"):
            for count in range(decisions):
                actions = decide(count)
                if actions is None:
                    break
                self.play(actions)
                if self.ending:
                    break
            return self.ending, self.now

    def _frame(self, actions: Mapping[int, str]) -> None:
        codes = [ENGINE_CODES[actions.get(one, IDLE)] for one in range(len(self.scenario.left) - 1)]
        self.now = self.engine.advance_together(codes)
        self.ending = find_end(self.now, self.scenario, self._watch)


@contextmanager
def _taken_back(match: Match | TeamMatch, *names: str) -> Iterator[None]:
    """Let a block play on; afterwards the match and these attributes are as before."""
    now, state = match.now, match.engine.save()
    before = {name: getattr(match, name) for name in names}
    for name, value in before.items():
        setattr(match, name, deepcopy(value))
    yield
    match.now = match.engine.restore(state, now)
    for name, value in before.items():
        setattr(match, name, value)


def for_players(scenario: Scenario, players: int) -> Scenario:
    """Return the situation for `players` of its four attackers, each with an opponent."""
    left = tuple(replace(p, controllable=p.role != "GK") for p in scenario.left[: players + 1])
    missing = MOST_PLAYERS - players
    return replace(scenario, left=left, right=scenario.right[: len(scenario.right) - missing])

"""One episode: the engine, the rules that end it, the reward, and the decision points; saved and restored as a
whole."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from vlgym.errors import UserError

from .actions import ENGINE_CODES, engine_code
from .decisions import DecisionMaker
from .engine import Engine, Snapshot, engine_mark
from .reward import RewardMeter
from .scenario import Scenario

ENDS = ("goal", "goal against", "out of play", "ball lost", "time")
SETTLE_FRAMES = 10
"""Most frames at the start in which the ball is taken up."""

_LARGEST_STATE = 1_000_000


@dataclass(frozen=True)
class Played:
    """What one reply did: reward, frames played, why the episode ended (one of `ENDS`, or empty)."""

    reward: float
    frames: int
    ending: str


@dataclass(frozen=True)
class Foresight:
    """What replies would lead to: their reward, the ending if they end the episode, and the frame after them."""

    reward: float
    ending: str
    now: Snapshot

    @property
    def kept(self) -> bool:
        return not self.ending and self.now.owner_team == 0


@dataclass
class Match:
    """A scenario being played; the settings are those of `Football`."""

    start: str = "with_ball"
    release_direction: bool = False
    action_mix_up: bool = False
    decision_points: bool = True
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
        self.decisions = DecisionMaker()

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

    def foresee(self, actions: Sequence[str]) -> Foresight:
        """Play replies on a copy of the match and take everything back: what they would lead to. Used by the oracle."""
        kept = (self.now, self.meter, self.decisions, self._watch, self.ending)
        state = self.engine.save()
        self.meter, self.decisions, self._watch = deepcopy(self.meter), replace(self.decisions), dict(self._watch)
        reward = 0.0
        for action in actions:
            reward += self.play(action).reward
            if self.ending:
                break
        seen = Foresight(reward, self.ending, self.now)
        self.engine.restore(state, kept[0])
        self.now, self.meter, self.decisions, self._watch, self.ending = kept
        return seen

    def save(self) -> dict[str, Any]:
        """Return the whole state as JSON-able data."""
        engine = base64.b64encode(zlib.compress(self.engine.save(), 1)).decode("ascii")
        return {
            "scenario": self.scenario.to_dict(),
            "seed": self.seed,
            "engine": engine,
            "mark": engine_mark(),
            "ending": self.ending,
            "watch": dict(self._watch),
            "meter": asdict(self.meter),
            "decisions": asdict(self.decisions),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Restore what `save` returned.

        Raises:
            UserError: another build of the engine saved it, or it holds no engine state. Nothing of it has reached the
                engine then, which would end the process on foreign bytes.
        """
        if state["mark"] != engine_mark():
            raise UserError(
                f"The match was saved by engine {state['mark']}, but this is {engine_mark()}; a state belongs to one "
                "build of the engine. Restore it where it was saved, or play the episode again from its seed."
            )
        data = unpack(state["engine"])
        scenario = Scenario.from_dict(state["scenario"])
        meter, decisions = RewardMeter(**state["meter"]), DecisionMaker(**state["decisions"])
        self.begin(scenario, state["seed"])
        self.now = self.engine.restore(data)
        self.meter, self.decisions = meter, decisions
        self._watch = dict(state["watch"])
        self.ending = state["ending"]

    def _take_ball(self) -> None:
        """Run to the right until our player has the ball at his feet: at most half a second in the shipped situations.

        At first nobody has it, and the agent is given just any player until somebody does; published programs begin
        there, and with a frame or two of standing still the ball may never be taken up.
        """
        for _ in range(SETTLE_FRAMES):
            if self.now.owner != -1 or self.now.mode != 0:
                break
            self.now = self.engine.advance(ENGINE_CODES["right"])
            find_end(self.now, self.scenario, self._watch)
        if self.release_direction:
            self.engine.press(ENGINE_CODES["release_direction"])

    def _frame(self, action: str) -> float:
        goals = self.now.score
        self.now = self.engine.advance(engine_code(action, self.action_mix_up))
        reward, stolen = self.meter.pay(self.now, action)
        self.ending = find_end(self.now, self.scenario, self._watch, stolen)
        if self.reward == "scoring":
            return float(self.now.score[0] - goals[0] - self.now.score[1] + goals[1])
        return reward


def find_end(now: Snapshot, rules: Scenario, watch: dict[str, int], stolen: bool = False) -> str:
    """Return why the frame ends the episode (one of `ENDS`), or an empty string.

    Args:
        now: the frame.
        rules: what ends it.
        watch: the mode and the team that had the ball in frames before, -1 at first; this frame is noted in it.
        stolen: whether the reward's rules call the ball lost.
    """
    left_play = now.mode != 0 and watch["mode"] == 0
    changed = now.owner_team != -1 and watch["team"] not in (-1, now.owner_team)
    watch["mode"] = now.mode
    if now.owner_team != -1:
        watch["team"] = now.owner_team
    if rules.end_on_score and any(now.score):
        return "goal" if now.score[0] else "goal against"
    if rules.end_on_out_of_play and left_play:
        return "out of play"
    if stolen or (rules.end_on_possession_change and changed):
        return "ball lost"
    return "time" if now.frame >= rules.duration else ""


def unpack(engine: str) -> bytes:
    """Return the engine's bytes of a saved state.

    Raises:
        UserError: there are none, or too many.
    """
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(engine, validate=True), _LARGEST_STATE)
    except (binascii.Error, zlib.error, TypeError, ValueError):
        raise UserError("The saved football match holds no engine state.") from None
    if not unpacker.eof:
        raise UserError("The saved football match is cut off or too large.")
    return data

"""Football after MageBench: lead an attack on the Google Research Football engine."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.rendering import fit_image
from vlgym.env.reset_options import ResetOption
from vlgym.errors import check_choice
from vlgym.parsers.headings import HeadingParser
from vlgym.types import Outcome

from .build import require_engine
from .engine import ACTION_SETS, DIRECTIONS, draw_camera, explain_actions, require_camera
from .match import Match
from .pitch import PitchPainter
from .plugin import GROUPS, MAGEBENCH
from .scenario import Scenario, get_scenario, read_file
from .tactics import Tactician

CAMERA_SIZE = (360, 640)


class Football(VLEnv):
    """Football: lead your team's attack to a goal.

    Goal: score before the ball is lost, goes out of play, or 400 frames (40 seconds) have passed.
        You always play the one of your team with the ball; the engine plays all others.
    Observation: the pitch from above with numbered discs (`view="tactical"`, 336 x 448 or any
        size), or the engine's own camera (`view="camera"`, 360 x 640, off the screen through EGL).
        The text names your player, the ball's owner, sticky commands and time, but no places.
    Actions: MageBench's 16: eight directions (`left`, `top_left`, `top`, ... `bottom_left`),
        `long_pass`, `high_pass`, `short_pass`, `shot`, `sprint`, `release_sprint`, `dribble`,
        `release_dribble`. `action_set="18"` adds `sliding` and `release_direction`, `"19"` also
        `idle`. Directions, sprint and dribble are sticky: they hold until replaced or released. One
        reply plays until the next decision point: a repeated direction runs on for up to 10 frames
        unless the edge or an opponent comes near, a pass or shot plays until somebody has the ball,
        anything else is one frame.
    Reward: MageBench's, for every frame 20 (0.8 S_move + 1.0 S_oppo + 2.0 scored + 1.0 t/T stolen +
        20 s S_pass + min(100 S_shot, 2/3)); see `reward.py`. As published, a lost ball is paid, and
        more the later it is lost. `reward="scoring"`: +1 for a goal, -1 for one against.
    Endings: terminated at a goal, when the ball goes out of play, or when the opponents take it;
        truncated after 400 frames or `max_turns` replies. The package's full games go on to their
        own duration.
    Success: your team has scored.
    Score: `info["score"]` is the sum of MageBench's reward, whatever `reward` is.
    Info: `scenario`, `frame`, `reply_frames` (of the last reply), `ending`, `goals`, `ball_owner`
        (`us`, `them`, `nobody`), `controlled` (jersey number), `sticky`, `parts` (sum of each term).
    Splits: differ by seed (engine's chance, situation drawn); they share the 108 situations, which
        carry MageBench's names, regions and categories; their places and titles are ours.
    Oracle: a scripted attacker that tries plays on a copy of the match; good, not optimal.

    References:
        MageBench, arXiv 2412.04531. Kurach et al., Google Research Football: A Novel Reinforcement
        Learning Environment, AAAI 2020.

    Args:
        scenario: `R1_P_1` ... `R9_R_4`, a name of the package (`academy_corner`), or `any`, `mini`,
            `package`: the seed draws one of these lists.
        scenario_file: path of a YAML file with other scenarios; `scenario` is a name in it or `any`.
        view: `tactical` or `camera`.
        action_set: `16`, `18` or `19`.
        decision_points: whether a reply plays until the next decision point, else one frame. With
            `compat` or `protocol` they are MageBench's: one more frame of the direction after every
            pass or shot, and the first reply's direction is forgotten.
        reward: `magebench` or `scoring`.
        start: `with_ball` (default): our player takes up the ball before the first reply; or
            `published` (default with `compat`): the engine's first frame, when nobody has it.
        release_direction: with `with_ball`, release the direction once the ball is taken; else
            `right` stays on, so that an idle player runs.
        action_mix_up: execute the actions of a development version of gfootball, whose action sets
            disagree (`sprint` rushes the keeper, `dribble` switches players, ...).
        compat: `None`, or `"magebench"`: the mix-up and the published start.
        protocol: `None`, or `"magebench"`: its headings (`vlgym.parsers.headings`) and system turn.
        system_turn: whether the rules are a system message and the reply format stands in the first
            user message (`False` for models without a system role); default with `protocol`.
        **kwargs: of `VLEnv`.

    Options of `reset`: `scenario`, a name; `level`, 0 to 4: an open goal near by, one farther off,
        a run past defenders, that with a goalkeeper, MageBench's situations.

    Raises:
        UserError: an argument is out of its range, a scenario file is bad, or the engine is not
            installed.
    """

    prompt = PromptTemplate(
        version=1,
        instructions="You are playing football. {task}\n{format}",
        turn="Turn {turn} of {max_turns}. {state}\nLegal actions: {actions}",
    )
    reset_options: ClassVar = {
        "scenario": ResetOption(
            "the situation", "the name of a scenario, or any, mini or package",
            lambda env, value: env._list_names(value), ("no such scenario", 1, ""),
        )
    }  # fmt: skip

    level_arguments: ClassVar = (
        *({"names": (f"academy_{name}",)} for name in ("empty_goal_close", "empty_goal", "run_to_score")),
        {"names": ("academy_run_to_score_with_keeper",)},
        {"names": MAGEBENCH},
    )

    def __init__(
        self,
        *,
        scenario: str = "any",
        scenario_file: str | None = None,
        view: str = "tactical",
        action_set: str = "16",
        decision_points: bool = True,
        reward: str = "magebench",
        start: str | None = None,
        release_direction: bool = False,
        action_mix_up: bool | None = None,
        compat: str | None = None,
        protocol: str | None = None,
        system_turn: bool | None = None,
        **kwargs: Any,
    ) -> None:
        if check_choice("protocol", protocol, (None, "magebench")) and not kwargs.get("parser"):
            kwargs["parser"] = HeadingParser()
        check_choice("view", view, ("tactical", "camera"))
        check_choice("reward", reward, ("magebench", "scoring"))
        check_choice("start", start, (None, "published", "with_ball"))
        check_choice("compat", compat, (None, "magebench"))
        self._actions = ACTION_SETS[check_choice("action_set", action_set, ACTION_SETS)]

        # An episode may take as many turns as frames. MageBench's situations take long to read.
        self._file = Path(scenario_file) if scenario_file is not None else None
        self.names = self._list_names(scenario)
        if kwargs.get("max_turns") is None:
            usual = self._file is None and self.names == MAGEBENCH
            durations = [Scenario.duration] if usual else [self._find(name).duration for name in self.names]
            kwargs["max_turns"] = max(durations)
        self.view = view
        super().__init__(**kwargs)

        # System parts are named before the first episode.
        require_engine()
        if view == "camera":
            require_camera()
        self.system_turn = protocol is not None if system_turn is None else system_turn
        self.match = Match(
            start=start or ("published" if compat else "with_ball"),
            release_direction=release_direction,
            action_mix_up=bool(compat) if action_mix_up is None else action_mix_up,
            decision_points=decision_points,
            published="magebench" in (compat, protocol),
            reward=reward,
        )
        self._tactician = Tactician()
        self._painter = PitchPainter(*self.image_size)
        self._reply_frames = 0

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        names = options.get("scenario", self.names)
        scenario = self._find(names[int(rng.integers(len(names)))])
        seed = int(rng.integers(2**31 - 1))
        if scenario.swap_sides and rng.integers(2):
            scenario = scenario.swapped()
        self.match.begin(scenario, seed)
        self._tactician = Tactician()
        self._reply_frames = 0

    def act(self, action: str) -> Outcome:
        played = self.match.play(action)
        self._tactician.note(action)
        self._reply_frames = played.frames
        late = played.ending == "time"
        ended = bool(played.ending) and not late
        return Outcome(played.reward, terminated=ended, truncated=late, feedback=played.ending)

    def natural_size(self) -> tuple[int, int] | None:
        return CAMERA_SIZE if self.view == "camera" else None

    def image(self) -> NDArray[np.uint8]:
        match = self.match
        if self.view == "camera":
            frame = draw_camera(match.scenario, match.seed, match.engine.save())
            return fit_image(frame, self.image_size)
        return self._painter.draw(match.now, match.scenario.duration, match.engine.commands())

    def task(self) -> str:
        view = (
            "The picture shows the pitch from above. Yellow discs are your team, blue discs the opponents, "
            "numbers are jersey numbers, the small white disc is the ball. The red ring marks your player. "
            "Short lines show where players are running."
            if self.view == "tactical"
            else "The picture is the camera's view of the pitch. Your team wears yellow; your player's name is "
            "written in blue above him."
        )
        rules = self.match.scenario
        lost = "The attack is over when the opponents get the ball or it leaves the pitch. "
        return (
            f"{view} You attack the goal on the right, and you always play the one of your team who has the "
            f"ball. {lost if rules.end_on_possession_change else ''}Score a goal within {rules.duration} "
            "frames (ten frames are a second). Keep the ball, move it forward past opponents, pass to free "
            "team-mates, and shoot when the way to the goal is clear. "
            f"A direction ({', '.join(DIRECTIONS)}) lets your player run that way until you say otherwise; "
            f"give it twice in a row to run on further. {explain_actions(self._actions)}."
        )

    def state_text(self) -> str:
        now, limit = self.match.now, self.match.scenario.duration
        ours = f"Your number {now.owner + 1} has the ball."
        ball = (ours, "The opponents have the ball.", "Nobody has the ball.")[now.owner_team]
        return (
            f"Frame {max(now.frame, 0)} of {limit}. You play number {now.controlled + 1}. "
            f"{ball} On: {', '.join(self.match.engine.commands()) or 'nothing'}."
        )

    def legal_actions(self) -> list[str]:
        return list(self._actions)

    def oracle(self) -> str | None:
        return self._tactician.decide(self.match)

    def think(self, action: str) -> str:
        return self._tactician.explain(self.match.now, action)

    def success(self) -> bool:
        return self.match.now.score[0] > 0

    def score(self) -> float:
        return float(sum(self.match.meter.totals.values()))

    def extra_info(self) -> dict[str, Any]:
        now = self.match.now
        return {
            "scenario": self.match.scenario.name,
            "frame": max(now.frame, 0),
            "reply_frames": self._reply_frames,
            "ending": self.match.ending,
            "goals": list(now.score),
            "ball_owner": ("us", "them", "nobody")[now.owner_team],
            "controlled": now.controlled + 1,
            "sticky": self.match.engine.commands(),
            "parts": dict(self.match.meter.totals),
        }

    def save(self) -> dict[str, Any]:
        plan = {"previous": self._tactician.previous, "rest": list(self._tactician.rest)}
        return {"match": self.match.save(), "plan": plan, "reply_frames": self._reply_frames}

    def load(self, state: dict[str, Any]) -> None:
        self.match.load(state["match"])
        self._tactician = Tactician(**state["plan"])
        self._reply_frames = int(state["reply_frames"])

    def close(self) -> None:
        self.match.engine.close()
        super().close()

    def _list_names(self, scenario: Any) -> tuple[str, ...]:
        """Return the names that `scenario` stands for, each of which exists."""
        if self._file is not None:
            names = tuple(read_file(self._file))
            return names if scenario == "any" else (check_choice(f"{self._file}: scenario", scenario, names),)
        if scenario in GROUPS:
            return GROUPS[scenario]
        return (get_scenario(str(scenario)).name,)

    def _find(self, name: str) -> Scenario:
        return read_file(self._file)[name] if self._file is not None else get_scenario(name)

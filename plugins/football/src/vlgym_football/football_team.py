"""Football for a team: two to four attackers, an agent each, against a defence."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from vlgym.env.prompts import PromptTemplate
from vlgym.errors import check_choice, check_number
from vlgym.games.multi import MultiVLEnv, Round
from vlgym.types import Image

from .build import require_engine
from .engine import ACTION_SETS, DIRECTIONS, IDLE, explain_actions
from .match import MOST_PLAYERS, TeamMatch, for_players
from .pitch import PitchPainter
from .plugin import TEAM
from .scenario import FOLDER, read_file
from .tactics import TeamScript

DURATION = 120  # frames of an attack
JITTER = 1.0  # metres by which starts differ each way
ACTIONS = ACTION_SETS["19"]


class FootballTeam(MultiVLEnv):
    """Football for two to four: each agent plays one attacker, all at once.

    Goal: score before the ball is lost, goes out of play, or 120 frames (12 seconds) have passed.
        Defenders close in the first owner of the ball, and a team-mate is better placed.
    Observation: the pitch from above with numbered discs, your own player in a red ring, the owner
        of the ball in a white one (336 x 448 pixels by default). The text names your player, the
        ball's owner, your sticky commands and the time; places are in the picture only.
    Actions: gfootball's 19: eight directions (`left`, `top_left`, `top`, ... `bottom_left`),
        `long_pass`, `high_pass`, `short_pass`, `shot`, `sprint`, `release_sprint`, `dribble`,
        `release_dribble`, `sliding`, `release_direction`, `idle`. All act at once; a decision holds
        for five frames. Directions, sprint and dribble stay on until replaced or released. The
        running direction chooses the receiver of a pass.
    Reward: 1 for a goal, -1 for a goal against; all are paid.
    Endings: terminated at a goal, when the ball goes out of play, or when the opponents take it;
        truncated after 120 frames.
    Success: the team has scored. `score` is 1 for a goal, else 0.
    Info: `scenario`, `frame`, `ending`, `ball_owner` (`us`, `them` or `nobody`), `number` (of your
        player) and `sticky`.
    Splits: differ by seed: the situation, places within a metre, the engine's chance, and the seat.
    Oracle: a planner: with the ball it tries shots, and passes with the shot after them, on a copy
        of the match, else runs; without it, makes itself free or fetches a loose ball. Default
        opponents: the same.
    References: Kurach et al., Google Research Football, AAAI 2020 (gfootball 2.10.2); MageBench,
        arXiv 2412.04531, for words and drawing. The situations are this package's.

    Args:
        players: how many attackers play, each by an agent: 2 to 4. Each brings one more opponent.
        scenario: the name of a situation; `any` draws one for each episode.
        frame_skip: frames of a decision, 1 to 20 (ten are a second).
        **kwargs: of `MultiVLEnv`.

    Raises:
        UserError: an argument is out of its range, or the engine is not installed.
    """

    symmetric: ClassVar[bool] = True
    at_once: ClassVar[bool] = True
    prompt = PromptTemplate(
        version=1, instructions="You are playing football. {task}\n{format}", turn="{state}Legal actions: {actions}"
    )

    def __init__(self, *, players: int = 2, scenario: str = "any", frame_skip: int = 5, **kwargs: Any) -> None:
        check_number("players", players, 2, MOST_PLAYERS)
        check_choice("scenario", scenario, ("any", *TEAM))
        check_number("frame_skip", frame_skip, 1, 20)
        self.players = self.seats = players
        self.scenario = scenario
        if kwargs.get("max_turns") is None:
            kwargs["max_turns"] = math.ceil(DURATION / frame_skip)
        self.match = TeamMatch(frame_skip)
        super().__init__(**kwargs)
        require_engine()
        self._painter = PitchPainter(*self.image_size)

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        drawn = TEAM[int(rng.integers(len(TEAM)))]
        name = drawn if self.scenario == "any" else self.scenario
        scenario = for_players(read_file(FOLDER / "team.yaml")[name], self.players).jittered(rng, JITTER)
        self.match.begin(scenario, int(rng.integers(2**31 - 1)))
        # The attacker of each seat, from 0; his number is two more: the goalkeeper has 1.
        self._attackers = list(range(self.players))
        self._advice: dict[int, str] = {}
        self._script = TeamScript(self.match)

    def movers(self) -> tuple[int, ...]:
        return () if self.match.ending else tuple(range(self.seats))

    def moves(self, seat: int) -> list[str]:
        return list(ACTIONS)

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        self._advice = {}
        paid = self.match.play({self._attackers[seat]: action for seat, action in moves.items()})
        ending = self.match.ending
        late = ending == "time"
        return Round((paid,) * self.seats, terminated=bool(ending) and not late, truncated=late, feedback=ending)

    def idle(self, seat: int) -> str:
        return IDLE

    def draw(self, seat: int) -> Image:
        now, attacker = self.match.now, self._attackers[seat]
        commands = self.match.engine.commands(attacker)
        return self._painter.draw(replace(now, controlled=attacker + 1), DURATION, commands)

    def goal(self, seat: int) -> str:
        attacker = self._attackers[seat]
        mates = " and ".join(f"number {other + 2}" for other in range(self.players) if other != attacker)
        return (
            "The picture shows the pitch from above. Yellow discs are your team, blue discs the opponents, "
            "numbers are jersey numbers, the small white disc is the ball. The red ring marks your player, a "
            "white ring the owner of the ball where that is another. Short lines show where players are "
            f"running. You attack the goal on the right. You play number {attacker + 2} all the time; others "
            f"play {mates}, and you cannot speak with each other. All decide at once, and a decision holds "
            f"for {self.match.frame_skip} frames (ten frames are a second). The attack is over when the "
            f"opponents get the ball or it leaves the pitch. Score a goal within {DURATION} frames: it earns "
            "1 for all of you. Keep the ball, pass to whoever is placed better, make yourself free for a pass "
            "when a team-mate has the ball, run to meet a pass, and shoot when the way to the goal is clear. "
            f"A direction ({', '.join(DIRECTIONS)}) lets your player run that way until you say otherwise. "
            f"{explain_actions(ACTIONS)}."
        )

    def tell(self, seat: int) -> str:
        now, attacker = self.match.now, self._attackers[seat]
        mine = now.owner == attacker + 1
        ours = "You have the ball." if mine else f"Your number {now.owner + 1} has the ball."
        ball = (ours, "The opponents have the ball.", "Nobody has the ball.")[now.owner_team]
        on = ", ".join(self.match.engine.commands(attacker)) or "nothing"
        return f"Frame {max(now.frame, 0)} of {DURATION}. You play number {attacker + 2}. {ball} On: {on}. "

    def won(self, seat: int) -> bool:
        return self.match.now.score[0] > 0

    def points(self, seat: int) -> float | None:
        return float(self.match.now.score[0])

    def details(self, seat: int) -> dict[str, Any]:
        now, attacker = self.match.now, self._attackers[seat]
        return {
            "scenario": self.match.scenario.name, "frame": max(now.frame, 0), "ending": self.match.ending,
            "ball_owner": ("us", "them", "nobody")[now.owner_team], "number": attacker + 2,
            "sticky": self.match.engine.commands(attacker),
        }  # fmt: skip

    def advise(self, seat: int) -> str | None:
        """Return the script's action, which is kept until the next decision."""
        attacker = self._attackers[seat]
        if attacker not in self._advice:
            self._advice[attacker] = self._script.choose(attacker)
        return self._advice[attacker]

    def explain(self, seat: int, action: str) -> str:
        now = self.match.now
        if now.owner_team != 0:
            return f"the ball is loose, so {action}"
        return f"{'I have' if now.owner == self._attackers[seat] + 1 else 'a team-mate has'} the ball, so {action}"

    def mirror(self) -> None:
        self._attackers.reverse()

    def close(self) -> None:
        self.match.engine.close()
        super().close()

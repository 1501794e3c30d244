"""BabyAI's missions in MiniGrid, each in one room or its neighbours."""

import contextlib
import functools
import io
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from minigrid.envs.babyai import GoToLocal, OpenDoor, PickupDist, PutNextLocal
from minigrid.envs.babyai.core.levelgen import LevelGen
from minigrid.envs.babyai.core.verifier import OBJ_TYPES_NOT_DOOR as THINGS
from minigrid.envs.babyai.core.verifier import AfterInstr, BeforeInstr, GoToInstr, PickupInstr
from minigrid.utils.baby_ai_bot import BabyAIBot, DisappearedBoxError

from vlgym.env.adapter import GymAdapter
from vlgym.env.prompts import PromptTemplate
from vlgym.errors import check_choice
from vlgym.types import Outcome


class PickupGoTo(LevelGen):
    """A room of eight objects; MiniGrid registers no level of this kind."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            num_rows=1, num_cols=1, num_dists=8, locked_room_prob=0.0, locations=False, unblocking=False,
            implicit_unlock=False, **kwargs,
        )  # fmt: skip

    def rand_instr(self, action_kinds: Any, instr_kinds: Any, depth: int = 0) -> Any:
        """Draw `pick up A, then go to B`, or the same in the other order of words."""
        first, then = PickupInstr(self.rand_obj(THINGS)), GoToInstr(self.rand_obj(THINGS))
        return BeforeInstr(first, then) if self._rand_bool() else AfterInstr(then, first)


KINDS: dict[str, Callable[..., Any]] = {
    "goto": GoToLocal,
    "pickup": PickupDist,
    "open": functools.partial(OpenDoor, select_by="color"),
    "putnext": PutNextLocal,
    "pick_up_seq_go_to": PickupGoTo,
}


class BabyAI(GymAdapter):
    """A mission in a grid world that the agent sees in part.

    Goal: accomplish the mission, one of five kinds: go to an object, pick one up, open a door, put
        an object next to another, pick one up and go to another.
    Observation: MiniGrid's picture of the 7 x 7 cells ahead of the agent, which stands in the middle
        of the lowest row and looks up. Cells behind walls are black. The text holds the mission.
    Actions: `turn left`, `turn right`, `go forward`, `pick up`, `drop`, `toggle`.
    Reward: 1 - 0.9 * steps / `max_turns` at success, else 0.
    Endings: terminated at success; truncated at `max_turns`.
    References: arXiv 1810.08272 (BabyAI), arXiv 2411.13543 (BALROG), minigrid 3.2.0.

    Args:
        kind: BALROG's name of the kind of mission.
    """

    actions: ClassVar[dict[str, Any]] = {
        "turn left": 0, "turn right": 1, "go forward": 2, "pick up": 3, "drop": 4, "toggle": 5,
    }  # fmt: skip
    prompt = PromptTemplate(
        version=1,
        instructions="You are the red triangle in a grid world. The image shows the cells ahead of you: "
        "you stand in the middle of the lowest row and look up. pick up, drop and toggle (open or "
        "close) act on the cell in front of you. Go to an object means: stand in front of it and face "
        "it. {task} You have at most {max_turns} turns.\n{format}",
        turn="Turn {turn} of {max_turns}.\nLegal actions: {actions}",
    )

    def __init__(self, *, kind: str = "goto", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kind = check_choice("kind", kind, tuple(KINDS))

    def make_inner(self) -> Any:
        shown = {"render_mode": "rgb_array", "agent_pov": True, "tile_size": 32}
        return KINDS[self.kind](max_steps=self.max_turns, **shown)

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Draw a mission; BabyAI prints a line for each one that it rejects."""
        with contextlib.redirect_stdout(io.StringIO()):
            super().start(rng, options)
        self._bot = BabyAIBot(self.inner)
        self._advice = self._bot.replan()

    def act(self, action: str) -> Outcome:
        """Step, and tell the bot: it must see every step to know what is explored and done."""
        outcome, advice, self._advice = super().act(action), self._advice, None
        # The bot's plans end at an opened box, and where it knows no path.
        with contextlib.suppress(DisappearedBoxError, AssertionError):
            if advice is not None and not self.done:
                self._advice = self._bot.replan(self.actions[action])
        return outcome

    def task(self) -> str:
        return f"Your mission: {self.inner.mission}."  # type: ignore[union-attr]

    def oracle(self) -> str | None:
        """BabyAI's bot, which sees what the picture shows; `None` once its plans have ended."""
        return next((name for name, number in self.actions.items() if number == self._advice), None)

"""Base of all MiniWorld tasks: the world, the picture, the oracle's pilot, and reaching a box."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vlgym.env.adapter import GymAdapter
from vlgym.env.prompts import PromptTemplate
from vlgym.errors import UserError, check_choice
from vlgym.types import Outcome

from . import engine
from .oracles import Goal, Pilot, reach

MOVES: dict[str, Any] = {"turn left": 0, "turn right": 1, "move forward": 2}
MOVES_AND_PICK_UP: dict[str, Any] = {**MOVES, "move back": 3, "pick up": 4}
ALL_ACTIONS: dict[str, Any] = {**MOVES_AND_PICK_UP, "drop": 5, "toggle": 6, "done": 7}

COMPAT = (None, "vldac")

MOST_NAMED = 3  # things that the oracle's thoughts name
AHEAD, NEAR = 10, 2.0  # degrees to a side that count as ahead; metres that count as near
DEEP = 100.0  # metres under the floor, where no camera looks

# VL-DAC's setting as in its public code (corl-team/VL-DAC): most turns of an episode, images in the
# prompt (also in the appendix of arXiv 2508.04280v1), the last reward of an episode without success.
VLDAC_TURNS, VLDAC_IMAGES, VLDAC_FAILURE = 128, 4, -1.0

_INSTRUCTIONS = (
    "You are a robot in a 3D world, and the image shows what your camera sees. {task} "
    "You have at most {max_turns} turns.\n{format}"
)


class MiniWorldTask(GymAdapter):
    """Base of all MiniWorld tasks.

    Splits: train, val and test differ by seed only. Rewards use `T`, MiniWorld's
    `max_episode_steps`, which `max_turns` sets.

    Args:
        domain_rand: MiniWorld's randomisation: light, sky and textures, camera height, pitch and
            field of view, and the size of every single step and turn. The oracle then plans with
            the mean step and plans again at every turn. Not for Sign; the Fast variants vary
            textures only.
        compat: `None`, or `"vldac"`, the setting of VL-DAC's code: 128 turns at most, four images in
            the prompt, a random action for an unreadable reply, and -1 instead of 0 for the step
            that ends an episode without success. `T` stays MiniWorld's, and no `max_turns` exceeds
            the card's.

    Raises:
        UserError: the world has no randomisation.
    """

    prompt = PromptTemplate(
        version=1, instructions=_INSTRUCTIONS, turn="Turn {turn} of {max_turns}.\nLegal actions: {actions}"
    )
    actions: ClassVar[dict[str, Any]] = MOVES
    can_randomise: ClassVar[bool] = True

    def __init__(self, *, domain_rand: bool = False, compat: str | None = None, **kwargs: Any) -> None:
        if check_choice("compat", compat, COMPAT) is not None:
            kwargs = apply_vldac(kwargs)
        super().__init__(**kwargs)
        self.compat = compat
        if domain_rand and not self.can_randomise:
            raise UserError(f"MiniWorld's {self.world_name} has fixed steps and looks; leave domain_rand=False.")
        self.domain_rand = domain_rand
        self._pilot: Pilot | None = None

    @property
    def world_name(self) -> str:
        """MiniWorld's name of its class, which is this one's too."""
        return type(self).__name__

    @property
    def world(self) -> Any:
        """The MiniWorld environment; it exists from the first reset to `close()`."""
        if self.inner is None:
            raise UserError("The MiniWorld world is not open: call reset() first.")
        return self.inner

    def aim(self) -> str:
        """The agent's target, in words."""
        return "the red box"

    def goal(self) -> Goal | None:
        """Return the oracle's current goal; `None` where it knows no way."""
        return reach(self.world, self.world.box)

    def task(self) -> str:
        return f"Go to {self.aim()}. {self.steps_text()}"

    def describe(self) -> str:
        lines = []
        for far, angle, thing in self._in_view():
            side = f"{abs(angle)} degrees to the {'right' if angle > 0 else 'left'}"
            lines.append(f"{thing} {far:.1f} m away, {side if angle else 'straight ahead'}")
        return "; ".join(lines) or "nothing but walls and floor"

    def _in_view(self) -> list[tuple[float, int, str]]:
        """Return metres away, degrees to the right and name of each thing in view, nearest first."""
        agent, view = self.world.agent, []
        for entity in find_visible(self.world):
            offset = entity.pos - agent.pos
            ahead, right = float(offset @ agent.dir_vec), float(offset @ agent.right_vec)
            angle = round(math.degrees(math.atan2(right, ahead)))
            view.append((math.hypot(ahead, right), angle, name_thing(entity)))
        return sorted(view)

    def make_inner(self) -> Any:
        world = engine.open_world(self.world_name, self.image_size, domain_rand=self.domain_rand)
        world.unseen = self.modality not in ("image", "both")
        return world

    def prepare(self, rng: np.random.Generator) -> None:
        """Set the world before it is reset; by default nothing."""

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Reset the world on our generator: a seed gives MiniWorld's own episode of that seed."""
        if self.inner is None:
            self.inner = self.make_inner()
        self.prepare(rng)
        self._pilot = None
        self.last_reward, self.done = 0.0, False
        if self.compat is None:
            self.world.max_episode_steps = self.max_turns
        self.world.np_random = rng
        self._see(*self.world.reset())

    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        self._see(self.inner_obs, self.inner_info)
        ended = outcome.terminated or outcome.truncated or self.turn + 1 >= self.max_turns
        if self.compat and ended and outcome.reward <= 0:
            return replace(outcome, reward=VLDAC_FAILURE)
        return outcome

    def oracle(self) -> str | None:
        goal = self.goal()
        return None if goal is None else self.pilot.next(goal)

    def think(self, action: str) -> str:
        """Name the nearest things that are shown and their sides, whatever the action."""
        words, view = [], [] if self.modality == "none" else self._in_view()
        for far, angle, thing in view[:MOST_NAMED]:
            side = "ahead" if abs(angle) <= AHEAD else "right" if angle > 0 else "left"
            words.append(f"{thing} {'near' if far < NEAR else 'far'} {side}")
        return f"I see {', '.join(words) or 'nothing'}."

    @property
    def pilot(self) -> Pilot:
        if self._pilot is None:
            self._pilot = Pilot(self.world)
        return self._pilot

    def steps_text(self) -> str:
        params = self.world.params
        turn, step = (params.sample(None, name) for name in ("turn_step", "forward_step"))
        about = "about " if self.domain_rand else ""
        return f"A turn rotates you by {about}{turn:g} degrees; a move takes you {about}{step:g} m."

    def carrying_text(self, names: dict[int, str]) -> str:
        """Return the agent's load in words; `names` has names by `id()` of the entities."""
        carried = self.world.agent.carrying
        return f"You carry {'nothing' if carried is None else names[id(carried)]}."

    def _see(self, observation: Any, info: dict[str, Any]) -> None:
        """Keep the picture (Sign wraps it in a dict) and a copy of the info."""
        self.inner_obs = observation["obs"] if isinstance(observation, dict) else observation
        self.inner_info = dict(info)


def find_visible(world: Any) -> list[Any]:
    """Return the entities without which the camera's picture would differ.

    `MiniWorldEnv.get_visible_ents` looks for a part of each, close to the floor, so it misses most
    of the near ones.
    """
    shown, visible = world.render_obs(), []
    for entity in world.entities:
        if entity is world.agent:
            continue

        # Without the entity, which sinks into the ground, the picture may be another.
        foot = entity.pos
        entity.pos = foot - np.array([0.0, DEEP, 0.0])
        try:
            if entity.is_static:
                world._render_static()
            if not np.array_equal(world.render_obs(), shown):
                visible.append(entity)
        finally:
            entity.pos = foot
    world._render_static()
    return visible


def name_thing(entity: Any) -> str:
    """Return an entity's colour, where it has one, and kind."""
    kind = type(entity).__name__
    if kind == "TextFrame":
        return f"sign {entity.str}"
    if hasattr(entity, "mesh"):
        # Of a ball or key MiniWorld keeps the colour in the name of the mesh file only.
        from miniworld.objmesh import ObjMesh

        path = next(path for path, mesh in ObjMesh.cache.items() if mesh is entity.mesh)
        kind, _, color = Path(path).stem.partition("_")
        return f"{color} {kind}".strip()
    return f"{getattr(entity, 'color', '')} {kind.lower()}".strip()


class StatefulTask(MiniWorldTask):
    """A MiniWorld task whose turn text also says something about the state."""

    prompt = PromptTemplate(
        version=1, instructions=_INSTRUCTIONS, turn="Turn {turn} of {max_turns}. {state}\nLegal actions: {actions}"
    )


def apply_vldac(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the base class's arguments with VL-DAC's turns, history and fallback filled in.

    Its limit lies on top of MiniWorld's, so the lower one ends the episode.
    """
    published: dict[str, Any] = {"max_turns": VLDAC_TURNS, "invalid_action": "published"}
    arguments = published | {key: value for key, value in arguments.items() if value is not None}
    spec = arguments.get("vlgym_spec")
    if spec is not None:
        arguments["vlgym_spec"] = replace(spec, history_turns=VLDAC_IMAGES - 1, history_images=VLDAC_IMAGES)
        arguments["max_turns"] = min(arguments["max_turns"], spec.max_turns)
    return arguments

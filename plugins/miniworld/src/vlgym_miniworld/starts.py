"""Starts from which the red box has to be looked for: away from it, and not facing it."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from vlgym.errors import UserError, check_number

from .oracles import Pose, pose_of
from .tasks import MiniWorldTask

PLACES = 100  # tried for the robot in one world before another world is drawn
WORLDS = 100  # tried before the rule is given up as impossible
OTHER_COLOURS = ("blue", "green", "yellow", "purple", "grey")


class BoxTask(MiniWorldTask):
    """Base of the tasks in which the robot may start anywhere and looks for one red box.

    The v0 environments start as MiniWorld's do. Their v1 start away from the box and not facing it.

    Args:
        min_bearing: least angle between the robot's heading and the direction of the box at the
            start, in degrees, 170 at most.
        min_distance: least distance between the centres of robot and box at the start, in metres.
            Where both are 0, the start is MiniWorld's own.

    Options of `reset`, of a class with levels: `level`.

    Attributes:
        layout: attributes of MiniWorld's world and their values, such as its `size`; empty: its own.
        distractors: boxes of other colours in the world.

    Raises:
        UserError: at `reset`, no room has such a start.
    """

    layout: Mapping[str, int] = {}
    distractors: int = 0

    def __init__(self, *, min_bearing: float = 0.0, min_distance: float = 0.0, **kwargs: Any) -> None:
        check_number("min_bearing", min_bearing, 0, 170, hint="It is an angle in degrees.")
        check_number("min_distance", min_distance, 0, hint="It is a distance in metres.")
        super().__init__(**kwargs)
        self.min_bearing, self.min_distance = float(min_bearing), float(min_distance)
        self._own_layout: dict[str, int] = {}

    def make_inner(self) -> Any:
        world = super().make_inner()
        names = {name for arguments in self.level_arguments for name in arguments["layout"]}
        self._own_layout = {name: getattr(world, name) for name in names}
        return world

    def prepare(self, rng: np.random.Generator) -> None:
        for name, value in {**self._own_layout, **self.layout}.items():
            setattr(self.world, name, value)

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Reset the world, then draw the robot's place until it is far and aside enough."""
        super().start(rng, options)
        moved = bool(self.min_bearing or self.min_distance)
        if moved:
            self._draw_start()
        if self.distractors:
            self._place_distractors()
        if (moved or self.distractors) and not self.world.unseen:
            self._see(self.world.render_obs(), self.inner_info)

    def _place_distractors(self) -> None:
        world = self.world
        for number in range(self.distractors):
            thing = type(world.box)(color=OTHER_COLOURS[number % len(OTHER_COLOURS)])
            world.place_entity(thing)
            thing.randomize(world.params, world.np_random if self.domain_rand else None)

    def _draw_start(self) -> None:
        world = self.world
        for _ in range(WORLDS):
            for _ in range(PLACES):
                world.entities.remove(world.agent)
                world.place_agent()  # any room, any place in it, any heading
                bearing, distance = locate(pose_of(world), world.box)
                if bearing >= self.min_bearing and distance >= self.min_distance:
                    return
            world.reset()
        raise UserError(
            f"{self.world_name} has no start {self.min_distance:g} m from the box and "
            f"{self.min_bearing:g} degrees aside that {WORLDS} worlds could show. "
            "Choose a smaller min_distance or min_bearing."
        )


def locate(pose: Pose, entity: Any) -> tuple[float, float]:
    """Return the angle between a pose's heading and an entity (0 to 180 degrees), and its distance."""
    east, south = float(entity.pos[0]) - pose.x, float(entity.pos[2]) - pose.z
    aside = math.remainder(math.atan2(-south, east) - pose.heading, math.tau)
    return abs(math.degrees(aside)), math.hypot(east, south)

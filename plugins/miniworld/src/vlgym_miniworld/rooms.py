"""Reach the red box in rooms: Hallway, OneRoom (three sizes), FourRooms, WallGap, Sidewalk."""

from collections.abc import Mapping
from typing import Any, ClassVar

from .oracles import Goal, reach
from .starts import BoxTask
from .tasks import MiniWorldTask


class Hallway(BoxTask):
    """A straight hallway of 12 x 4 m with a red box in its last 2 m.

    Goal: come near the red box (centres closer than 1.15 m).
    Observation: the robot's camera, 60 degrees of vertical view; in Hallway-v0 it starts within 45
        degrees of the hallway's direction, so the box is nearly always in sight.
    Actions: turn left, turn right (15 degrees), move forward (0.15 m).
    Reward: `1 - 0.2 t / T` on reaching the box at step t of T = `max_turns`, else 0.
    Endings: terminated on reaching the box; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """


class OneRoom(BoxTask):
    """A square room with a red box: 10 m wide (OneRoom) or 6 m (OneRoomS6, OneRoomS6Fast).

    Goal: come near the red box (centres closer than both radii + 1.1 times the longest move).
    Observation: the robot's camera, 60 degrees of vertical view; the box may be behind it.
    Actions: turn left, turn right, move forward, by the degrees and metres that the text states.
    Reward: `1 - 0.2 t / T` on reaching the box at step t of T = `max_turns`, else 0.
    Endings: terminated on reaching the box; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    level_arguments: ClassVar[tuple[Mapping[str, Any], ...]] = tuple(
        {
            "layout": {"size": size}, "distractors": others,
            "min_bearing": bearing, "min_distance": distance, "max_turns": turns,
        }
        for size, others, bearing, distance, turns in (
            (4, 0, 0.0, 2.0, 40), (6, 0, 45.0, 3.0, 60), (10, 0, 45.0, 4.5, 120),
            (10, 3, 45.0, 4.5, 120), (12, 5, 45.0, 6.5, 160), (14, 8, 45.0, 8.5, 200),
        )
    )  # fmt: skip


class OneRoomS6(OneRoom): ...


class OneRoomS6Fast(OneRoom):
    level_arguments = tuple(
        {**arguments, "max_turns": turns}
        for arguments, turns in zip(OneRoom.level_arguments, (12, 14, 22, 26, 34, 42), strict=True)
    )


class FourRooms(MiniWorldTask):
    """Four rooms of 6 x 6 m in a ring, joined by openings 2 m wide, with a red box in one of them.

    Goal: come near the red box (centres closer than 1.15 m).
    Observation: the robot's camera, 60 degrees of vertical view.
    Actions: turn left, turn right (15 degrees), move forward (0.15 m).
    Reward: `1 - 0.2 t / T` on reaching the box at step t of T = `max_turns`, else 0.
    Endings: terminated on reaching the box; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """


class WallGap(MiniWorldTask):
    """Two roofless yards of 14 x 7.5 m, joined by a gap 3 m wide; robot and box are in different ones.

    Goal: come near the red box (centres closer than 1.15 m).
    Observation: the robot's camera, 60 degrees of vertical view; a building stands outside.
    Actions: turn left, turn right (15 degrees), move forward (0.15 m).
    Reward: `1 - 0.2 t / T` on reaching the box at step t of T = `max_turns`, else 0.
    Endings: terminated on reaching the box; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """


class Sidewalk(MiniWorldTask):
    """A sidewalk of 3 x 12 m next to a street marked by cones; a red box stands at its far end.

    Goal: come near the red box (centres closer than 1.15 m) without stepping into the street.
    Observation: the robot's camera, 60 degrees of vertical view.
    Actions: turn left, turn right (15 degrees), move forward (0.15 m).
    Reward: `1 - 0.2 t / T` on reaching the box at step t of T = `max_turns`, else 0.
    Endings: terminated on reaching the box, or in the street with reward 0; truncated after
        `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    def task(self) -> str:
        return (
            "You stand on a sidewalk with a wall on one side and a street with cones on the other. "
            f"Go to {self.aim()} without stepping into the street, which ends the episode. "
            f"{self.steps_text()}"
        )

    def goal(self) -> Goal:
        street = self.world.street

        def in_street(x: float, z: float) -> bool:
            return bool(street.min_x < x < street.max_x and street.min_z < z < street.max_z)

        return reach(self.world, self.world.box, closed=in_street)

"""Tasks about things: PickupObjects, PutNext, CollectHealth, and finding a named thing in ThreeRooms and
RoomObjects.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from vlgym.errors import check_choice
from vlgym.types import Outcome

from .oracles import DROP, Goal, KitPlanner, pick_up, put_next, reach, things
from .tasks import ALL_ACTIONS, MOVES, MOVES_AND_PICK_UP, MiniWorldTask, StatefulTask, name_thing


class PickupObjects(StatefulTask):
    """A roofless room of 12 x 12 m with five boxes, balls and keys, which vanish when picked up.

    Goal: pick up all five objects.
    Observation: the robot's camera, 60 degrees of vertical view; the text counts what was picked up.
    Actions: turn left, turn right (15 degrees), move forward, move back (0.15 m), pick up (what the hand, 0.6 m
        ahead, meets).
    Reward: +1 for each object.
    Endings: terminated when all are picked up; truncated after `max_turns` turns. The score is the share
        picked up.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    actions = MOVES_AND_PICK_UP

    def aim(self) -> str:
        return "an object"

    def task(self) -> str:
        return (
            f"Pick up all {self.world.num_objs} objects (boxes, balls and keys): "
            f"go close to one, face it, and pick it up. {self.steps_text()}"
        )

    def state_text(self) -> str:
        return f"Picked up: {self.world.num_picked_up} of {self.world.num_objs}."

    def score(self) -> float:
        return self.world.num_picked_up / self.world.num_objs

    def goal(self) -> Goal | None:
        left = [entity for entity in self.world.entities if entity is not self.world.agent]
        return pick_up(self.world, left) if left else None


class PutNext(StatefulTask):
    """A room of 12 x 12 m with a box in each of six colours.

    Goal: carry the red box to the yellow box and drop it there (centres closer than both radii + 0.19 m).
    Observation: the robot's camera, 60 degrees of vertical view; the text says what the robot carries.
    Actions: turn left, turn right (15 degrees), move forward, move back (0.15 m), pick up, drop; toggle and
        done exist in MiniWorld's action space and have no effect.
    Reward: `1 - 0.2 t / T` when the red box lies near the yellow one at step t of T = `max_turns`, else 0.
    Endings: terminated when the red box lies near the yellow one; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    actions = ALL_ACTIONS

    def aim(self) -> str:
        return "the yellow box" if self.world.agent.carrying is self.world.red_box else "the red box"

    def task(self) -> str:
        return f"Pick up the red box, carry it to the yellow box and drop it next to it. {self.steps_text()}"

    def state_text(self) -> str:
        boxes = {
            id(entity): f"the {entity.color} box" for entity in self.world.entities if entity is not self.world.agent
        }
        return self.carrying_text(boxes)

    def goal(self) -> Goal:
        world, red = self.world, self.world.red_box
        if world.agent.carrying is red:
            return put_next(world, red, world.yellow_box)
        return pick_up(world, [red], self.pilot.ground(things(world, without=[red])))

    def oracle(self) -> str | None:
        """The next action; a wrong or jammed box is dropped first."""
        carried = self.world.agent.carrying
        if carried is not None and carried is not self.world.red_box:
            return DROP
        action = super().oracle()
        if action is None:
            return DROP if carried is not None else self.pilot.next(pick_up(self.world, [self.world.red_box]))
        return action


class CollectHealth(StatefulTask):
    """A room of 16 x 16 m with 18 health kits; health falls by 2 each step, and a kit restores it to 100.

    Goal: stay alive to the end. A kit that is picked up appears again elsewhere; 50 steps without one are
        death.
    Observation: the robot's camera, 60 degrees of vertical view; the text states the health.
    Actions: turn left, turn right (15 degrees), move forward, move back (0.15 m), pick up; drop, toggle and
        done exist in MiniWorld's action space and have no effect.
    Reward: +2 for each step alive, -100 for dying.
    Endings: terminated on death; truncated after `max_turns` turns. Success is to be alive after as many
        steps as that; unreadable replies cost turns but are no steps, so they cannot sit it out.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    actions = ALL_ACTIONS

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._kits: KitPlanner | None = None

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().start(rng, options)
        self._kits = None

    def aim(self) -> str:
        return "a health kit"

    def task(self) -> str:
        return (
            "Stay alive: you lose 2 health with every step, and picking up a health kit restores it to 100. "
            f"Go close to a kit, face it, and pick it up. {self.steps_text()}"
        )

    def state_text(self) -> str:
        return f"Health: {self.world.health}."

    def success(self) -> bool:
        return self.world.health > 0 and self.world.step_count >= self.max_turns

    @property
    def kits(self) -> KitPlanner:
        """The choice of kits of this episode, built when it is first asked for."""
        if self._kits is None:
            self._kits = KitPlanner(self.world)
        return self._kits

    def goal(self) -> Goal:
        return pick_up(self.world, self.kits.next_kits())

    def oracle(self) -> str | None:
        """The next action; the nearest kit will do when the best one is too far to be reached alive."""
        action = super().oracle()
        if action is None or self.pilot.remaining >= self.world.health // 2:
            self.kits.settle_for_any()
            action = super().oracle()
        return action


class FindObject(MiniWorldTask):
    """Base of the worlds for which MiniWorld has no task: go to a thing that the text names.

    Args:
        target: key of the thing to find, one of `TARGETS`; drawn for each episode by default.
        **kwargs: see `MiniWorldTask`.
    """

    TARGETS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, target: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.fixed_target = check_choice("target", target, (None, *self.TARGETS))
        self._target: Any = None
        self._target_name = ""

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Let MiniWorld build its world, then draw what to find in it: something not near yet that can be
        reached.
        """
        super().start(rng, options)
        named = self.name_things()
        keys = [self.TARGETS[int(i)] for i in rng.permutation(len(self.TARGETS))]
        if self.fixed_target is not None:
            keys = [self.fixed_target]
        fit = (key for key in keys if self._is_fit(named[key][1]))
        self._target_name, self._target = named[next(fit, keys[0])]

    def act(self, action: str) -> Outcome:
        outcome = super().act(action)
        if self.world.near(self._target):
            self.done, self.last_reward = True, float(self.world._reward())
            return Outcome(self.last_reward, terminated=True)
        return outcome

    def aim(self) -> str:
        return f"the {self._target_name}"

    def goal(self) -> Goal:
        return reach(self.world, self._target)

    def name_things(self) -> dict[str, tuple[str, Any]]:
        """Return, for each key of `TARGETS`, the thing's name in this episode and its entity."""
        raise TypeError(f"{type(self).__name__} must define name_things()")

    def _is_fit(self, entity: Any) -> bool:
        return not self.world.near(entity) and self.pilot.can_walk(reach(self.world, entity))


class ThreeRooms(FindObject):
    """A large room and two small ones with a red box, a green box, a green ball, a blue key and a rubber duck
    in them.

    Goal: go to the thing that the instructions name, drawn for each episode. MiniWorld has this world but no
        task and no reward for it; task and reward here follow its other worlds.
    Observation: the robot's camera, 60 degrees of vertical view.
    Actions: turn left, turn right (15 degrees), move forward (0.15 m).
    Reward: `1 - 0.2 t / T` on coming near the thing (centres closer than both radii + 0.19 m) at step t of T =
        `max_turns`, else 0.
    Endings: terminated on reaching the thing; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    actions = MOVES
    TARGETS = ("red box", "green box", "green ball", "blue key", "rubber duck")

    def name_things(self) -> dict[str, tuple[str, Any]]:
        """The five things; MiniWorld places them in this order, after the picture on the wall."""
        red, green, _, duck, key, ball, *_ = self.world.entities
        return dict(zip(self.TARGETS, zip(self.TARGETS, (red, green, ball, key, duck), strict=True), strict=True))


class RoomObjects(FindObject):
    """A roofless room of 10 x 10 m with a box, a ball and a key in random colours; the robot is wide (radius
    1.5 m), as in MiniWorld.

    Goal: go to the thing that the instructions name, drawn for each episode among those that can be reached.
        MiniWorld has this world but no task, no reward and no time limit for it; task, reward and limit here
        follow its other worlds.
    Observation: the robot's camera, 60 degrees of vertical view; the text says what the robot carries.
    Actions: turn left, turn right (15 degrees), move forward, move back (0.15 m), pick up, drop; toggle and
        done exist in MiniWorld's action space and have no effect.
    Reward: `1 - 0.2 t / T` on coming near the thing (centres closer than both radii + 0.19 m) at step t of T =
        `max_turns`, else 0.
    Endings: terminated on reaching the thing; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    prompt = StatefulTask.prompt
    actions = ALL_ACTIONS
    TARGETS = ("box", "ball", "key")

    def name_things(self) -> dict[str, tuple[str, Any]]:
        """The three things with their colours; MiniWorld places them in this order."""
        names = {}
        for key, entity in zip(self.TARGETS, self.world.entities, strict=False):
            names[key] = (name_thing(entity), entity)
        return names

    def state_text(self) -> str:
        return self.carrying_text({id(entity): f"the {name}" for name, entity in self.name_things().values()})

    def oracle(self) -> str | None:
        """The next action; whatever is carried is put down first."""
        return DROP if self.world.agent.carrying is not None else super().oracle()

"""Tasks about things: PickupObjects, PutNext, CollectHealth; named things in ThreeRooms, RoomObjects."""

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
    Actions: turn left, turn right (15 degrees), move forward, move back (0.15 m), pick up (what the
        hand, 0.6 m ahead, meets).
    Reward: +1 for each object.
    Endings: terminated when all are picked up; truncated after `max_turns` turns. The score is the
        share picked up.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    actions = MOVES_AND_PICK_UP

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

    Goal: carry the red box to the yellow box and drop it there (centres closer than both radii +
        0.19 m).
    Observation: the robot's camera, 60 degrees of vertical view; the text says what the robot
        carries.
    Actions: turn left, turn right (15 degrees), move forward, move back (0.15 m), pick up, drop;
        toggle and done have no effect, as in MiniWorld.
    Reward: `1 - 0.2 t / T` when the red box lies near the yellow one at step t of T = `max_turns`,
        else 0.
    Endings: terminated when the red box lies near the yellow one; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    actions = ALL_ACTIONS

    def task(self) -> str:
        deed = "Pick up the red box, carry it to the yellow box and drop it next to it."
        return f"{deed} {self.steps_text()}"

    def state_text(self) -> str:
        boxes = (entity for entity in self.world.entities if entity is not self.world.agent)
        return self.carrying_text({id(box): f"the {box.color} box" for box in boxes})

    def goal(self) -> Goal:
        world, red = self.world, self.world.red_box
        if world.agent.carrying is red:
            return put_next(world, red, world.yellow_box)
        return pick_up(world, [red], self.pilot.ground(things(world, without=[red])))

    def oracle(self) -> str | None:
        """The next action; a wrong or jammed box is dropped first."""
        world, carried = self.world, self.world.agent.carrying
        if carried is not None and carried is not world.red_box:
            return DROP
        action = super().oracle()
        if action is None:
            # Without room to carry the box ahead, the box alone is the goal.
            return DROP if carried is not None else self.pilot.next(pick_up(world, [world.red_box]))
        return action


class CollectHealth(StatefulTask):
    """A room of 16 x 16 m with 18 health kits; a step costs 2 health, a kit restores it to 100.

    Goal: stay alive to the end. A kit that is picked up appears again elsewhere; 50 steps without
        one are death.
    Observation: the robot's camera, 60 degrees of vertical view; the text states the health.
    Actions: turn left, turn right (15 degrees), move forward, move back (0.15 m), pick up; drop,
        toggle and done have no effect, as in MiniWorld.
    Reward: +2 for each step alive, -100 for dying.
    Endings: terminated on death; truncated after `max_turns` turns. Success is to be alive after
        `max_turns` steps; unreadable replies cost turns but are no steps, so they cannot sit it out.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    actions = ALL_ACTIONS
    kits: KitPlanner

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().start(rng, options)
        self.kits = KitPlanner(self.world)

    def task(self) -> str:
        return (
            "Stay alive: you lose 2 health with every step, and picking up a health kit restores it "
            f"to 100. Go close to a kit, face it, and pick it up. {self.steps_text()}"
        )

    def state_text(self) -> str:
        return f"Health: {self.world.health}."

    def success(self) -> bool:
        return self.world.health > 0 and self.world.step_count >= self.max_turns

    def goal(self) -> Goal:
        return pick_up(self.world, self.kits.next_kits())

    def oracle(self) -> str | None:
        """The next action; any kit will do when the best one cannot be reached alive."""
        action = super().oracle()
        if action is None or self.pilot.remaining >= self.world.health // 2:
            self.kits.settle_for_any()
            action = super().oracle()
        return action


class FindObject(MiniWorldTask):
    """Base of the worlds for which MiniWorld has no task: go to a thing that the text names.

    The thing is drawn for each episode among those that can be reached and are not near at the
    start. Task, reward and limit follow MiniWorld's other worlds.

    Args:
        target: key of the thing to find, one of `TARGETS`.
    """

    TARGETS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, target: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.fixed_target = check_choice("target", target, (None, *self.TARGETS))
        self._target: Any = None
        self._target_name = ""

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
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
    """A large room and two small ones with two boxes, a ball, a key and a rubber duck in them.

    Goal: go to the thing that the instructions name, drawn for each episode.
    Observation: the robot's camera, 60 degrees of vertical view.
    Actions: turn left, turn right (15 degrees), move forward (0.15 m).
    Reward: `1 - 0.2 t / T` on coming near the thing (centres closer than both radii + 0.19 m) at
        step t of T = `max_turns`, else 0.
    Endings: terminated on reaching the thing; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    actions = MOVES
    TARGETS = ("red box", "green box", "green ball", "blue key", "rubber duck")

    def name_things(self) -> dict[str, tuple[str, Any]]:
        red, green, _, duck, key, ball, *_ = self.world.entities  # in MiniWorld's order
        entities = red, green, ball, key, duck
        return {key: (key, thing) for key, thing in zip(self.TARGETS, entities, strict=True)}


class RoomObjects(FindObject):
    """A roofless room of 10 x 10 m with a box, a ball and a key in random colours.

    The robot is wide (radius 1.5 m), as in MiniWorld.

    Goal: go to the thing that the instructions name, drawn for each episode among those that can be
        reached.
    Observation: the robot's camera, 60 degrees of vertical view; the text says what the robot
        carries.
    Actions: turn left, turn right (15 degrees), move forward, move back (0.15 m), pick up, drop;
        toggle and done have no effect, as in MiniWorld.
    Reward: `1 - 0.2 t / T` on coming near the thing (centres closer than both radii + 0.19 m) at
        step t of T = `max_turns`, else 0.
    Endings: terminated on reaching the thing; truncated after `max_turns` turns.
    References: Chevalier-Boisvert et al. 2023, arXiv:2306.13831.
    """

    prompt = StatefulTask.prompt
    actions = ALL_ACTIONS
    TARGETS = ("box", "ball", "key")

    def name_things(self) -> dict[str, tuple[str, Any]]:
        ours = zip(self.TARGETS, self.world.entities, strict=False)  # in MiniWorld's order
        return {key: (name_thing(entity), entity) for key, entity in ours}

    def state_text(self) -> str:
        things = self.name_things().values()
        return self.carrying_text({id(entity): f"the {name}" for name, entity in things})

    def oracle(self) -> str | None:
        """The next action; whatever is carried is put down first."""
        return DROP if self.world.agent.carrying is not None else super().oracle()

"""Plan of an evaluation: parts, each an environment in one setting, and numbers of episodes.

A plan is data. It comes from ids or from a suite; `play` plays it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..env import VLEnv
from ..env.prompts import shows_picture
from ..env.seeding import SPLITS
from ..env_groups import LOCAL, EnvGroup
from ..errors import MissingSystemPartError, NotInstalledError, UserError, check_choice
from ..play.controls import SHOWN
from ..registry import get_registry
from .summary import changes_bounds

QUICK_IDS = (
    "vlgym/NumberLine-v1", "vlgym/OneRoomS6Fast-v1", "vlgym/Sokoban-v0", "vlgym/ALFWorld-v1",
    "vlgym/WebShop-v1", "vlgym/WebUI-v1", "vlgym/Football-v1", "vlgym/SeeDigit-v0",
    "vlgym/KitchenPair-v0", "vlgym/ScreensClick-v0",
)  # fmt: skip
"""One environment of each family."""

PAPER = (
    "vlgym/Hallway-v0", "vlgym/OneRoom-v0", "vlgym/FourRooms-v0", "vlgym/WallGap-v0",
    "vlgym/EZPoints-v0", "vlgym/ALFWorld-v0", "vlgym/WebShop-v0",
)  # fmt: skip
"""VL-DAC's training environments (arXiv 2508.04280): MiniWorld, Gym-Cards, ALFWorld, WebShop."""

# The core's suites; `all` is every installed environment. Plugins contribute the others.
OWN_SUITES: dict[str, tuple[str, ...]] = {"quick": QUICK_IDS, "paper": PAPER, "all": ()}
EPISODES, QUICK_EPISODES = 100, 10


@dataclass(frozen=True)
class Part:
    """One environment in one setting.

    Attributes:
        episodes: seeds of each item.
        repeats: how often each seed is played.
        pictures: as `Runner`'s.
        items: further constructor arguments of each item.
        fresh_seeds: each repeat of an item has a new seed, as a benchmark's runs have.
    """

    env_id: str
    split: str = "test"
    episodes: int = EPISODES
    repeats: int = 1
    planner: str = "online"
    pictures: str = SHOWN
    arguments: Mapping[str, Any] = field(default_factory=dict)
    items: tuple[Mapping[str, Any], ...] = ({},)
    fresh_seeds: bool = False

    @property
    def key(self) -> str:
        """The part's name in records and reports: the id, and settings that are no defaults."""
        return name_part(self.env_id, self.planner, self.pictures)

    @property
    def total(self) -> int:
        """Number of episodes, repeats counted."""
        return len(self.items) * self.episodes * self.repeats

    @property
    def changed(self) -> bool:
        """True if registry.yaml has the floor and ceiling of another environment than this one."""
        settings = (self.arguments, *self.items)
        return self.planner != "online" or any(changes_bounds(self.env_id, each) for each in settings)

    def item_of(self, number: int) -> int:
        """Return an episode's item: numbers run through repeats, seeds, then items."""
        return number // (self.episodes * self.repeats)

    @property
    def per_seed(self) -> int:
        """Number of consecutive episodes that share a seed."""
        return 1 if self.fresh_seeds else self.repeats

    @property
    def pictured(self) -> bool:
        return shows_picture(self.arguments)

    def make(self, item: int = 0, group: EnvGroup = LOCAL) -> VLEnv:
        """Make the environment of an item, in a group."""
        planner = {} if self.planner == "online" else {"planner": self.planner}
        return group.make(self.env_id, **{**self.arguments, **self.items[item]}, **planner)


def name_part(env_id: str, planner: str, pictures: str) -> str:
    """Return a part's name in records and reports: the id, and settings that are no defaults."""
    return " ".join([env_id, *[planner] * (planner != "online"), *[pictures] * (pictures != SHOWN)])


class Job(NamedTuple):
    """An episode to play: a part and the number in it."""

    part: Part
    number: int


def list_jobs(parts: Sequence[Part], finished: set[tuple[str, int]] | None = None) -> list[Job]:
    """Return the episodes to play, parts with the longest first: they would otherwise end alone."""
    specs, done = get_registry().specs, finished or set()
    ordered = sorted(parts, key=lambda part: -specs[part.env_id].max_turns)
    return [Job(part, n) for part in ordered for n in range(part.total) if (part.key, n) not in done]


def plan_ids(
    env_ids: Sequence[str], *, episodes: int = EPISODES, split: str = "test", repeats: int = 1,
    planner: str | None = None, arguments: Mapping[str, Any] | None = None,
) -> list[Part]:  # fmt: skip
    """Return a part for each id; `UserError` for one that lacks the split or planner."""
    check_choice("--split", split, SPLITS)
    parts = []
    for env_id in dict.fromkeys(env_ids):
        spec = get_registry().get(env_id)
        spec.check_split(split)
        if planner is not None and planner not in spec.planners:
            raise UserError(f"{env_id} cannot be played by a {planner} planner; it has {', '.join(spec.planners)}.")
        parts.append(Part(env_id, split, episodes, repeats, planner or "online", arguments=dict(arguments or {})))
    return parts


def plan_suite(
    name: str, *, episodes: int | None = None, split: str = "test", repeats: int | None = None,
    planner: str | None = None, arguments: Mapping[str, Any] | None = None,
) -> tuple[list[Part], list[str]]:  # fmt: skip
    """Return the parts of a suite, and the ids of it that are not installed.

    A suite of the core plays ids; one of the plugins plays their items, each as often as the plugin
    says. `episodes` are seeds of an id, or of each item.

    Raises:
        UserError: no such suite; nothing of it is installed or has that planner.
    """
    if name not in OWN_SUITES:
        return _plan_contributed(name, episodes, split, repeats, planner, dict(arguments or {})), []
    registry = get_registry()
    wanted = OWN_SUITES[name] or tuple(sorted(registry.current()))
    missing = [env_id for env_id in wanted if env_id not in registry.specs]
    cards = [registry.specs[env_id] for env_id in wanted if env_id in registry.specs]
    env_ids = [card.id for card in cards if planner is None or planner in card.planners]

    # A suite of which nothing is installed says how to install its first id.
    if not env_ids:
        registry.get(wanted[0]) if wanted else None
        raise UserError(f"Nothing of suite {name} that is installed can be played with planner {planner}.")
    count = episodes or (QUICK_EPISODES if name == "quick" else EPISODES)
    parts = plan_ids(env_ids, episodes=count, split=split, repeats=repeats or 1, planner=planner, arguments=arguments)
    return parts, missing


def leave_out(parts: Sequence[Part]) -> tuple[list[Part], dict[str, str]]:
    """Return the parts and items that can be made, and id -> reason; the error if none can."""
    reasons: dict[str, UserError] = {}
    playable: list[Part] = []
    for part in parts:
        items = []
        for number, item in enumerate(part.items):
            try:
                part.make(number).close()
                items.append(item)
            except (MissingSystemPartError, NotInstalledError) as error:
                reasons[part.env_id] = error
        playable += [replace(part, items=tuple(items))] if items else []

    # A run of nothing would be no answer.
    if not playable and reasons:
        raise next(iter(reasons.values()))
    return playable, {env_id: str(error) for env_id, error in reasons.items()}


def list_suites() -> list[str]:
    registry = get_registry()
    names = {part.suite for record in registry.plugins for part in record.suites if part.env_id in registry.specs}
    return sorted({*OWN_SUITES, *names})


def add_controls(parts: Sequence[Part], pictures: Sequence[str]) -> list[Part]:
    """Return the parts, each followed by itself with other pictures, where its prompts show any."""
    played = []
    for part in parts:
        kinds = (part.pictures, *(pictures if part.pictured else ()))
        played += [replace(part, pictures=kind) for kind in kinds]
    return played


def _plan_contributed(
    name: str, episodes: int | None, split: str, repeats: int | None, planner: str | None, arguments: dict[str, Any]
) -> list[Part]:
    check_choice("--suite", name, list_suites())
    parts = [
        Part(
            share.env_id, split, episodes or share.episodes, repeats or share.repeats, setting,
            arguments=arguments, items=share.items, fresh_seeds=True,
        )
        for share in get_registry().suite(name) for setting in share.planners if planner in (None, setting)
    ]  # fmt: skip
    if not parts:
        raise UserError(f"Nothing in suite {name} has planner {planner}.")
    return parts

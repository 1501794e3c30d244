"""Crafter: survive in a drawn wilderness, and unlock achievements."""

import contextlib
import io
from typing import Any, ClassVar

from vlgym.env.adapter import GymAdapter
from vlgym.env.prompts import PromptTemplate

with contextlib.redirect_stderr(io.StringIO()):  # old Gym, which Crafter may import, prints advice
    import crafter

ENOUGH = 8  # achievements of a success: about as many as the best models have in BALROG (37 % of 22)


class World(crafter.Env):
    """Crafter with Gymnasium's interface, and with the same episode for a seed in every process."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._seed, self._episode = seed, 0
        return super().reset(), {"achievements": dict(self._player.achievements)}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        picture, reward, dead, info = super().step(action)
        return picture, reward, dead, False, info

    def close(self) -> None:
        """Nothing is open; without old Gym the base class lacks this."""

    def _balance_chunk(self, chunk: Any, objs: Any) -> None:
        # Crafter draws the creature that vanishes from a set, in the order of memory addresses.
        super()._balance_chunk(chunk, sorted(objs, key=self._world.objects.index))


class Crafter(GymAdapter):
    """A wilderness of 64 x 64 cells in which the agent gathers, builds, fights, eats and sleeps.

    Goal: unlock as many of Crafter's 22 achievements as possible; `score` is the share unlocked.
    Observation: Crafter's picture of the 9 x 7 cells around the agent; below it stand health, food,
        drink, energy and the inventory as icons with numbers. The text holds the rules. Nights are
        dark.
    Actions: Crafter's 17, `noop` to `make iron sword`; all are legal, and one whose needs are not
        met does nothing.
    Reward: Crafter's own: 1 in a turn that unlocks an achievement, and a tenth of the change of
        health.
    Endings: terminated at death; truncated at `max_turns`. Success ends no episode.
    References: arXiv 2109.06780 (Crafter), arXiv 2411.13543 (BALROG), crafter 1.8.3.
    """

    actions: ClassVar[dict[str, Any]] = {
        name.replace("_", " "): number for number, name in enumerate(crafter.constants.actions)
    }
    prompt = PromptTemplate(
        version=1,
        instructions="You play Crafter. The image shows the cells around you; you stand in the middle of "
        "its upper seven rows. The two rows below show your health, food, drink and energy, "
        "then your inventory, as icons with numbers up to 9. Nights are dark. The episode ends "
        "when your health is 0. {task} You have at most {max_turns} turns.\n"
        "move left, move right, move up, move down: turn that way, and step if the cell is "
        "free grass, sand or path. Lava kills.\n"
        "do: act on the cell in front of you: collect wood from a tree, a sapling from grass "
        "(by chance), stone or coal (needs a wood pickaxe), iron (needs a stone pickaxe), "
        "diamond (needs an iron pickaxe); drink water; strike a zombie, a skeleton or a cow, "
        "which you eat when it falls; eat a ripe plant.\n"
        "sleep: sleep, whatever you choose then, until your energy is full or you are hurt; it "
        "does nothing at full energy.\n"
        "place stone (uses 1 stone; also on water and lava), place table (2 wood), place "
        "furnace (4 stone), place plant (1 sapling; on grass only): put it into the free cell "
        "in front of you.\n"
        "make wood pickaxe, make wood sword (1 wood each), make stone pickaxe, make stone "
        "sword (1 wood and 1 stone each): needs a table next to you, diagonally too.\n"
        "make iron pickaxe, make iron sword (1 wood, 1 coal and 1 iron each): needs a table "
        "and a furnace next to you.\n"
        "noop: wait.\n"
        "{format}",
        turn="Turn {turn} of {max_turns}.\nLegal actions: {actions}",
    )

    def make_inner(self) -> Any:
        side = min(self.image_size)
        return World(size=(side, side), seed=0, length=None)

    def task(self) -> str:
        names = ", ".join(name.replace("_", " ") for name in crafter.constants.achievements)
        return f"Unlock as many of these achievements as you can: {names}."

    def unlocked(self) -> int:
        """Achievements of this episode so far."""
        return sum(count > 0 for count in self.inner_info["achievements"].values())

    def score(self) -> float:
        return self.unlocked() / len(crafter.constants.achievements)

    def success(self) -> bool:
        return self.unlocked() >= ENOUGH

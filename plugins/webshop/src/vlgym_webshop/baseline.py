"""WebShop's rule baseline: search for the instruction as it stands, open the first result, buy it without options."""

from __future__ import annotations

from collections.abc import Sequence

from vlgym.types import Reply, Turn

from .env import WebShop
from .session import BUY, ITEM, RESULTS


class RulePolicy:
    """The published rule, for `WebShop` environments only. After a fruitless search it goes back and repeats it."""

    name = "rule"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Return one reply per environment."""
        return [Reply(self.choose(turn.env.unwrapped)) for turn in turns]

    @staticmethod
    def choose(env: WebShop) -> str:
        """Return the reply for the page that an environment is on."""
        if env.page.kind == ITEM:
            action = f"click[{BUY}]"
        elif env.page.kind == RESULTS:
            action = next(
                (name for name in env.legal_actions() if name.startswith("click[b0")), "click[back to search]"
            )
        else:
            action = f"search[{env.task().removeprefix('Instruction: ').lower()}]"
        return env.parser.format([action])

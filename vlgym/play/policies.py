"""Policies that need no model: idle, random, oracle, scripted, replay."""

from collections.abc import Iterable, Sequence

from ..errors import UserError
from ..registry.making import unwrap
from ..types import AskingPolicy as AskingPolicy
from ..types import Policy as Policy
from ..types import Reply, StepRecord, Turn


class IdlePolicy:
    """Answers nothing at all: every reply is invalid and no action is executed."""

    name = "idle"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply("") for _ in turns]


class RandomPolicy:
    """Draws a legal action uniformly from the action space: the floor of every table."""

    name = "random"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply(turn.env.action_space.sample()) for turn in turns]


class OraclePolicy:
    """Plays each environment's own `solve()`: the ceiling of every table.

    Where the oracle has no action (an unsolvable hand), `fallback` answers with a random legal one;
    without it `reply` raises a `UserError`.
    """

    name = "oracle"

    def __init__(self, fallback: bool = False) -> None:
        self.fallback = fallback

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        replies = []
        for turn in turns:
            text = unwrap(turn.env).solve()
            if text is None and not self.fallback:
                raise UserError(
                    f"{turn.env_id} has no oracle action in this state (seed {turn.seed}, turn {turn.turn}); "
                    "use OraclePolicy(fallback=True) to act randomly there."
                )
            replies.append(Reply(turn.env.action_space.sample() if text is None else text))
        return replies


class ScriptedPolicy:
    """Answers turn `t` with `texts[t]` everywhere, starting over after the last one."""

    name = "scripted"

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = list(texts)
        if not self.texts:
            raise UserError("ScriptedPolicy needs at least one reply.")

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply(self.texts[turn.turn % len(self.texts)]) for turn in turns]


class ReplayPolicy:
    """Gives recorded replies again; `reply` raises `UserError` for a turn that was not recorded."""

    name = "replay"

    def __init__(self, records: Iterable[StepRecord]) -> None:
        self._replies = {
            _key(each): Reply(each.reply, None, each.cut, each.refused, each.usage, each.status, each.reasoning)
            for each in records
        }

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        for turn in turns:
            if (key := _key(turn)) not in self._replies:
                raise UserError(f"No recorded reply for {key[0]}, seed {turn.seed}, turn {turn.turn}.")
        return [self._replies[_key(turn)] for turn in turns]


def _key(place: Turn | StepRecord) -> tuple[str, int | None, int, int]:
    return place.part or place.env_id, place.seed, place.repeat, place.turn

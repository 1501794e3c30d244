"""Policies that need no model: idle, random, oracle, scripted, replay. A model's policy implements the same protocol
(see baselines)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import UserError
from ..registry.making import unwrap
from ..types import AskingPolicy as AskingPolicy
from ..types import Policy as Policy
from ..types import Reply, StepRecord, Turn


class IdlePolicy:
    """Answers nothing at all: every reply is invalid and no action is executed. The lowest row of a benchmark's
    table."""

    name = "idle"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply("") for _ in turns]


class RandomPolicy:
    """Draws a legal action uniformly from each environment's action space: the floor of every table."""

    name = "random"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply(turn.env.action_space.sample()) for turn in turns]


class OraclePolicy:
    """Plays each environment's own `solve()`: the ceiling of every table.

    Args:
        fallback: `True` answers with a random legal action where the oracle has none (an unsolvable hand); else that
            raises.
    """

    name = "oracle"

    def __init__(self, fallback: bool = False) -> None:
        self.fallback = fallback

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Ask each oracle for its next reply.

        Raises:
            UserError: an environment has no oracle, or none from this state, and there is no fallback.
        """
        replies = []
        for turn in turns:
            text = unwrap(turn.env).solve()
            if text is None:
                if not self.fallback:
                    raise UserError(
                        f"{turn.env_id} has no oracle action in this state (seed {turn.seed}, turn {turn.turn}); "
                        "use OraclePolicy(fallback=True) to act randomly there."
                    )
                text = turn.env.action_space.sample()
            replies.append(Reply(text))
        return replies


class ScriptedPolicy:
    """Answers turn `t` with `texts[t]`, starting over after the last one; the same for every environment."""

    name = "scripted"

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = list(texts)
        if not self.texts:
            raise UserError("ScriptedPolicy needs at least one reply.")

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Return the scripted text of each environment's turn."""
        return [Reply(self.texts[turn.turn % len(self.texts)]) for turn in turns]


class ReplayPolicy:
    """Gives the replies of recorded episodes again: evaluation without a model."""

    name = "replay"

    def __init__(self, records: Iterable[StepRecord]) -> None:
        self._replies = {
            (r.part or r.env_id, r.seed, r.repeat, r.turn): Reply(
                r.reply, None, r.cut, r.refused, r.usage, r.status, r.reasoning
            )
            for r in records
        }

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Return the recorded reply of each environment's seed and turn.

        Raises:
            UserError: that turn was not recorded.
        """
        replies = []
        for turn in turns:
            key = (turn.part or turn.env_id, turn.seed, turn.repeat, turn.turn)
            if key not in self._replies:
                raise UserError(f"No recorded reply for {key[0]}, seed {turn.seed}, turn {turn.turn}.")
            replies.append(self._replies[key])
        return replies

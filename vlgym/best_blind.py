"""The policy `blind` of `vlgym eval`: plays each environment as well as it is known to be played without the picture.

It measures nothing. Which player is best stands in registry.yaml, and where nobody measured it, the environment's own
player is taken, or the searcher.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .blind import Searcher
from .blind_policies import BlindPolicy, load_players, make_constant
from .making import unwrap
from .policies import IdlePolicy, Policy, RandomPolicy
from .registry_file import read_registry
from .spec import EnvSpec
from .types import Reply, Turn

_CONSTANT = re.compile(r"always (?P<action>.+)", re.DOTALL)


class BestBlind:
    """Plays every environment with its best blind player by success."""

    name = "blind"

    def __init__(self) -> None:
        self._chosen: dict[str, Policy] = {}

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Ask the player of each turn's environment."""
        replies = []
        for turn in turns:
            if turn.env_id not in self._chosen:
                entry = read_registry().get(turn.env_id)
                self._chosen[turn.env_id] = choose_player(unwrap(turn.env).vlgym_spec, entry)
            replies += self._chosen[turn.env_id].reply([turn])
        return replies


def choose_player(spec: EnvSpec | None, entry: dict[str, Any] | None) -> Policy:
    """Return the best player by success that registry.yaml records; else the first that the card names; else the
    searcher.

    Args:
        spec: the card; `None` for an environment without one.
        entry: the environment's entry, as `vlgym.registry_file.read_registry` returns it; `None` where there is none.
    """
    own = load_players(spec) if spec is not None else []
    searcher = BlindPolicy(Searcher.name, Searcher)
    best = ((entry or {}).get("blind") or {}).get("success_policy")
    if best == RandomPolicy.name:
        return RandomPolicy()
    if best in (IdlePolicy.name, "garbage"):
        return IdlePolicy()
    for player in (*own, searcher):
        if player.name == best:
            return player
    constant = _CONSTANT.fullmatch(best or "")
    return make_constant(constant["action"]) if constant else [*own, searcher][0]

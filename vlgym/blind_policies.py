"""Let blind players play: the policy that hands them a text and the legal actions, and takes their action.

Only this policy touches the environment, for its reply format. It finds no player good or bad: measuring is
`vlgym.testing.blind_floor`'s business.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from .blind import BlindPlayer, Constant
from .errors import PluginError, UserError
from .making import unwrap
from .spec import EnvSpec
from .types import Reply, Turn

MakePlayer = Callable[[random.Random], BlindPlayer]
"""Makes the player of one episode."""


class BlindPolicy:
    """Plays every episode with a blind player of its own.

    Args:
        name: of the policy, for reports.
        make: makes a player; called at the first turn of each episode.
    """

    def __init__(self, name: str, make: MakePlayer) -> None:
        self.name = name
        self._make = make
        self._playing: WeakKeyDictionary[Any, tuple[tuple[Any, ...], BlindPlayer]] = WeakKeyDictionary()

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Ask each episode's player.

        Raises:
            UserError: a player answers with something else than a text, or the turns hold no text.
        """
        return [Reply(unwrap(turn.env).parser.format([self._choose(turn)])) for turn in turns]

    def _choose(self, turn: Turn) -> str:
        if not turn.text:
            raise UserError(f"{turn.env_id}: a blind policy needs the turn's text; play it with vlgym.rollout.Runner.")
        episode = (turn.env_id, turn.part, turn.seed, turn.repeat)
        known, player = self._playing.get(turn.env, (None, None))
        if player is None or known != episode or turn.turn == 0:
            player = self._make(random.Random(repr((self.name, *episode))))
            self._playing[turn.env] = (episode, player)
        action = player.choose(str(turn.text), tuple(str(action) for action in turn.legal))
        if not isinstance(action, str):
            raise UserError(f"Blind player {self.name!r} chose {type(action).__name__}; choose() returns a text.")
        return action


def make_constant(action: str) -> BlindPolicy:
    """Return the policy that plays `action` at every turn."""
    return BlindPolicy(f"always {action}", partial(Constant, action=action))


def load_players(spec: EnvSpec) -> list[BlindPolicy]:
    """Return the policies of the blind players that a spec names.

    Raises:
        PluginError: one of them cannot be imported or is no `BlindPlayer`.
    """
    found = []
    for place in spec.blind:
        module, _, name = place.partition(":")
        try:
            cls = getattr(importlib.import_module(module), name)
        except Exception as error:
            raise PluginError(f"{spec.id}: cannot import {place}: {type(error).__name__}: {error}") from error
        if not (isinstance(cls, type) and issubclass(cls, BlindPlayer) and cls.name):
            raise PluginError(f"{spec.id}: {place} is no vlgym.blind.BlindPlayer with a name.")
        found.append(BlindPolicy(cls.name, cls))
    return found

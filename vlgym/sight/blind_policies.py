"""The policy that hands blind players a text and the legal actions, and takes their action.

Only it touches the environment, for its reply format.
"""

import pkgutil
import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from ..env.spec import EnvSpec
from ..errors import PluginError, UserError
from ..play.policies import IdlePolicy, Policy, RandomPolicy
from ..registry import get_registry
from ..registry.making import build, unwrap
from ..registry.registry_file import read_registry
from ..types import Reply, Turn
from .blind import BlindPlayer, Constant, Searcher
from .blind_learner import LEARNERS, learn

UNSEEN: dict[str, Any] = {"modality": "none"}
"""Arguments for players that look at no picture: drawing it can take most of a step."""

_CONSTANT = re.compile(r"always (?P<action>.+)", re.DOTALL)


class BestBlind:
    """Plays every environment with its best blind player by success."""

    name = "blind"

    def __init__(self) -> None:
        self._chosen: dict[str, Policy] = {}

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        replies = []
        for turn in turns:
            if turn.env_id not in self._chosen:
                entry = read_registry().get(turn.env_id)
                card = get_registry().specs.get(turn.env_id)  # not a worker's, whose import strings are code
                self._chosen[turn.env_id] = choose_player(card, entry)
            replies += self._chosen[turn.env_id].reply([turn])
        return replies


def choose_player(spec: EnvSpec | None, entry: dict[str, Any] | None) -> Policy:
    """Return the best player by success in an entry of `read_registry`, else the card's, else the searcher."""
    own = load_players(spec) if spec is not None else []
    searcher = BlindPolicy(Searcher.name, Searcher)
    best = ((entry or {}).get("blind") or {}).get("success_policy")
    if best == RandomPolicy.name:
        return RandomPolicy()
    if best in (IdlePolicy.name, "garbage"):
        return IdlePolicy()

    # Players by name: those of the card, learners, constants.
    for player in (*own, searcher):
        if player.name == best:
            return player
    if best in LEARNERS and spec is not None:
        return BlindPolicy(best, learn(spec, partial(build, spec, **UNSEEN), best))
    constant = _CONSTANT.fullmatch(best or "")
    return make_constant(constant["action"]) if constant else [*own, searcher][0]


MakePlayer = Callable[[random.Random], BlindPlayer]  # makes the player of one episode


class BlindPolicy:
    """Plays each episode with a fresh blind player, which `make` makes."""

    def __init__(self, name: str, make: MakePlayer) -> None:
        self.name = name
        self._make = make
        self._playing: WeakKeyDictionary[Any, tuple[tuple[Any, ...], BlindPlayer]] = WeakKeyDictionary()

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Ask each episode's player; a `UserError` without texts in the turns or in the answers."""
        return [Reply(unwrap(turn.env).parser.format([self._choose(turn)])) for turn in turns]

    def _choose(self, turn: Turn) -> str:
        if not turn.text:
            raise UserError(f"{turn.env_id}: a blind policy needs the turn's text; play it with a Runner.")

        # An episode that is begun again has a new player.
        episode = (turn.env_id, turn.part, turn.seed, turn.repeat)
        known, player = self._playing.get(turn.env, (None, None))
        if player is None or known != episode or turn.turn == 0:
            player = self._make(random.Random(repr((self.name, *episode))))
            self._playing[turn.env] = (episode, player)
        player.hear(turn.feedback)
        action = player.choose(str(turn.text), tuple(str(action) for action in turn.legal))
        if not isinstance(action, str):
            raise UserError(f"Blind player {self.name!r} chose {type(action).__name__}; choose() returns a text.")
        return action


def make_constant(action: str) -> BlindPolicy:
    """Return the policy that plays `action` at every turn."""
    return BlindPolicy(f"always {action}", partial(Constant, action=action))


def load_players(spec: EnvSpec) -> list[BlindPolicy]:
    """Return the policies of a spec's blind players; a `PluginError` if one cannot be imported."""
    players = []
    for place in spec.blind:
        try:
            cls = pkgutil.resolve_name(place)
        except Exception as error:
            raise PluginError(f"{spec.id}: cannot import {place}: {type(error).__name__}: {error}") from error
        if not (isinstance(cls, type) and issubclass(cls, BlindPlayer) and cls.name):
            raise PluginError(f"{spec.id}: {place} is no vlgym.sight.blind.BlindPlayer with a name.")
        players.append(BlindPolicy(cls.name, cls))
    return players

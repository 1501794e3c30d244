"""The pool of self-play: who sits opposite, and how strong each of them is.

The weights as they were after some updates, kept as files in the run's folder `pool/`, and the game's own players. A
past model answers with the run's own engine, which has its weights for that time only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vlgym.errors import UserError, check_number
from vlgym.types import Reply, Turn

from ..engine.engine import ModelPolicy
from ..runs.checkpoint import load_tensors, save_tensors
from .weights import Weights

FOLDER = "pool"
KEPT = 2
"""Checkpoints that a run keeps (`save_checkpoint`)."""


@dataclass(frozen=True)
class PoolOptions:
    """Opponents of self-play; where nobody of these is drawn, the model as it is holds every seat."""

    past: float = 0.3
    """Share of games in which one seat learns and a past model holds the others."""
    fixed: float = 0.2
    """Share of games in which one seat learns and a player of the game holds the others."""
    players: str = "random"
    """The game's players for that: random, oracle, search or what else the game has, or several with commas
    between."""
    every: int = 10
    """Updates between the models that join the pool; the first joins before the first update."""
    size: int = 10
    """Models that the pool holds. Beyond it the oldest leaves, but not the first."""
    ramp: int = 0
    """First updates, over which the share of past models grows from 0."""
    share_reward: bool = False
    """Pay every seat the mean of all seats' rewards, for games that are to be played together."""
    rating_games: int = 5
    """Seeds of each pair, each played from both seats, in the rating of the pool at the end; 0 for no rating."""

    def validate(self) -> None:
        """Raise `UserError` for a value out of its range."""
        for name in ("past", "fixed"):
            check_number(_flag(name), getattr(self, name), 0, 1)
        if self.past + self.fixed > 1:
            raise UserError(
                f"--pool.past {self.past:g} and --pool.fixed {self.fixed:g} are shares of the same games; together "
                "they may be 1 at most."
            )
        for name, least, most in (
            ("every", 1, 10**9),
            ("size", 1, 1000),
            ("ramp", 0, 10**9),
            ("rating_games", 0, 10**6),
        ):
            check_number(_flag(name), getattr(self, name), least, most)

    def names(self) -> list[str]:
        """The game's players that are asked for."""
        return [name.strip() for name in self.players.split(",")]

    def past_share(self, update: int) -> float:
        """Share of games against past models in an update, from 1."""
        return self.past * min(1.0, update / self.ramp) if self.ramp else self.past


class Pool:
    """Models of earlier updates.

    Args:
        folder: for their files.
        weights: of the run.
        options: how many, how often.
        device: of the weights.

    Attributes:
        members: `{"update", "file"}` of each, oldest first; `file` is size and checksum.
    """

    def __init__(self, folder: Path, weights: Weights, options: PoolOptions, device: str) -> None:
        self.folder, self.weights, self.options, self.device = folder, weights, options, device
        self.members: list[dict[str, Any]] = []
        self._left: dict[int, int] = {}  # who left -> checkpoints since then
        self._held: dict[int, dict[str, Tensor]] = {}
        named = {id(parameter): name for name, parameter in weights.family.model.named_parameters()}
        self._own = {named[id(parameter)]: parameter for parameter in weights.parameters}

    def see(self, update: int) -> None:
        """Take the model in before an update (from 1), if it is its turn."""
        if (update - 1) % self.options.every:
            return
        self.folder.mkdir(exist_ok=True)
        tensors = {name: parameter.detach().clone().cpu() for name, parameter in self._own.items()}
        self.members.append({"update": update - 1, "file": save_tensors(self._file(update - 1), tensors)})
        if len(self.members) > self.options.size:
            self._left[self.members.pop(min(1, len(self.members) - 2))["update"]] = 0
        for update, saves in list(self._left.items()):
            if saves >= KEPT:  # no checkpoint that is left names it
                self._file(update).unlink(missing_ok=True)
                del self._left[update]

    @contextmanager
    def playing(self, update: int) -> Iterator[None]:
        """Let the run's engines have the weights of a member meanwhile.

        Raises:
            UserError: its file is missing or damaged.
        """
        (member,) = [each for each in self.members if each["update"] == update]
        if update not in self._held:
            self._held = dict(list(self._held.items())[-1:])  # two at most: a game of two past models swaps them
            self._held[update] = load_tensors(self._file(update), member["file"], self.device)
        past = self._held[update]
        now = {name: parameter.detach().clone() for name, parameter in self._own.items()}
        self._put(past)
        try:
            yield
        finally:
            self._put(now)

    @torch.no_grad()
    def _put(self, tensors: Mapping[str, Tensor]) -> None:
        for name, parameter in self._own.items():
            parameter.copy_(tensors[name])
        self.weights.refresh()

    def _file(self, update: int) -> Path:
        return self.folder / f"update-{update:06d}.safetensors"

    def get_state(self) -> list[dict[str, Any]]:
        """Return its members as JSON-able data, for a checkpoint."""
        self._left = {update: saves + 1 for update, saves in self._left.items()}
        return [dict(member) for member in self.members]

    def set_state(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restore `get_state`; files of a future that was lost are deleted."""
        self.members = [dict(member) for member in state]
        known = {self._file(member["update"]) for member in self.members}
        for path in self.folder.glob("update-*.safetensors"):
            if path not in known:
                path.unlink()


class Past:
    """A member of the pool as a policy.

    Args:
        pool: where it is.
        update: after how many updates it was taken; `None` for the weights as they are.
        policy: samples with the run's engine.
    """

    def __init__(self, pool: Pool, update: int | None, policy: ModelPolicy) -> None:
        self.pool, self.update, self.policy = pool, update, policy
        self.name = "the model" if update is None else f"after {update} updates"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer each prompt."""
        if self.update is None:
            return self.policy.reply(turns)
        with self.pool.playing(self.update):
            return self.policy.reply(turns)


def _flag(name: str) -> str:
    return f"--pool.{name.replace('_', '-')}"

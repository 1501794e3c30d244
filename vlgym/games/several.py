"""A game with every seat open: as a `Table`, or as one of PettingZoo's two kinds of environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import NotInstalledError, UserError
from ..registry import get_registry
from ..registry.installing import how_to_install
from ..registry.making import build
from .multi import MultiVLEnv
from .table import Table

if TYPE_CHECKING:
    from .pettingzoo_envs import AecGame, ParallelGame

SKILL = "several agents"  # in the cards of these games, which lists them without an import


def open_table(env_id: str, **kwargs: Any) -> Table:
    """Return a game with every seat open; arguments are its constructor's but `seat` and `opponents`.

    Raises:
        UserError: the id cannot be made, is of one agent alone, or an argument is wrong.

    >>> table = open_table("vlgym/TicTacToe-v0")
    >>> table.reset(seed=1)
    >>> first = table.movers[0]
    >>> _ = table.step({first: table.solve(first)})
    >>> table.movers[0] == 1 - first, len(table.legal(1 - first))
    (True, 6)
    """
    spec = get_registry().get(env_id)
    for name in ("seat", "opponents"):
        if name in kwargs:
            why = "is for one agent's view, gymnasium.make(...); here every seat is open."
            raise UserError(f"{env_id}: {name} {why}")
    if kwargs.get("invalid_action") == "terminate":
        raise UserError(f"{env_id}: invalid_action='terminate' would end the game for all; use noop or random.")

    # The card does not say which base class a game has.
    game = build(spec, **kwargs)
    if not isinstance(game, MultiVLEnv):
        ids = sorted(each.id for each in get_registry().specs.values() if SKILL in each.skills)
        several = ", ".join(ids) or "none is installed"
        raise UserError(f"{env_id} is for one agent. Of several: {several}.")
    return Table(game)


def parallel_env(env_id: str, *, render_mode: str | None = None, **kwargs: Any) -> ParallelGame:
    """Return a PettingZoo `ParallelEnv`: all agents answer, those who do not move by `wait`.

    Args:
        render_mode: `"rgb_array"` (the pictures of all seats side by side) or `None`.
        **kwargs: as of `open_table`.
    """
    return _views().ParallelGame(open_table(env_id, **kwargs), render_mode)


def aec_env(env_id: str, *, render_mode: str | None = None, **kwargs: Any) -> AecGame:
    """Return a PettingZoo `AECEnv`, as `parallel_env`, in which one agent answers at a time.

    Moves made at once are executed when the last of them is there; none shows before.
    """
    return _views().AecGame(open_table(env_id, **kwargs), render_mode)


def _views() -> Any:
    try:
        from . import pettingzoo_envs
    except ModuleNotFoundError as error:
        if error.name != "pettingzoo":
            raise
        command = how_to_install("vlgym-pettingzoo")
        raise NotInstalledError(f"parallel_env and aec_env need the package pettingzoo: {command}") from None
    return pettingzoo_envs

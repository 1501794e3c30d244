"""Near-equilibrium play of the poker games: tables that OpenSpiel's CFR+ made (`pyspiel.CFRPlusSolver`, 2,000
iterations for Kuhn poker and 1,000 for Leduc hold'em, the average policy rounded to four digits)."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any


@lru_cache(maxsize=4)
def read_table(game: str) -> dict[str, dict[int, float]]:
    """Return information state -> action -> probability."""
    text = files("vlgym_pettingzoo").joinpath("tables", f"{game}.json").read_text(encoding="utf-8")
    return {state: {int(action): share for action, share in row.items()} for state, row in json.loads(text).items()}


def find_shares(state: Any) -> dict[int, float]:
    """Return the probability of each legal action of the player who moves."""
    row = read_table(state.get_game().get_type().short_name)[state.information_state_string()]
    return {action: row.get(action, 0.0) for action in state.legal_actions()}

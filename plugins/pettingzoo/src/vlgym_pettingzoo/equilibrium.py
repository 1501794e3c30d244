"""Near-equilibrium play of the poker games: tables that OpenSpiel's CFR+ made, shipped with the package.

`python -m vlgym_pettingzoo.equilibrium` makes them again. A test measures how much a best reply wins against them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyspiel

from .spiel import load_game

ITERATIONS = {"kuhn_poker": 2000, "leduc_poker": 1000}


@lru_cache(maxsize=4)
def read_table(game: str) -> dict[str, dict[int, float]]:
    """Return information state -> action -> probability."""
    text = files("vlgym_pettingzoo").joinpath("tables", f"{game}.json").read_text(encoding="utf-8")
    return {state: {int(action): share for action, share in row.items()} for state, row in json.loads(text).items()}


def find_shares(state: Any) -> dict[int, float]:
    """Return the probability of each legal action of the player who moves."""
    row = read_table(state.get_game().get_type().short_name)[state.information_state_string()]
    return {action: row.get(action, 0.0) for action in state.legal_actions()}


def measure_exploitability(game: str) -> float:
    """Return what best replies to the table win on average over both seats, in chips a hand; 0 at equilibrium.

    >>> measure_exploitability("kuhn_poker") < 1e-4
    True
    """
    rows = {state: list(row.items()) for state, row in read_table(game).items()}
    return float(pyspiel.exploitability(load_game(game), pyspiel.TabularPolicy(rows)))


def make_table(game: str, iterations: int) -> dict[str, dict[str, float]]:
    """Run CFR+; return the average policy, rounded to four digits."""
    rules = load_game(game)
    solver = pyspiel.CFRPlusSolver(rules)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    average, table = solver.average_policy(), {}
    waiting = [rules.new_initial_state()]
    while waiting:
        state = waiting.pop()
        if state.is_terminal():
            continue
        waiting += [state.child(action) for action in state.legal_actions()]
        if not state.is_chance_node():
            shares = dict(average.action_probabilities(state))
            row = {str(action): round(shares.get(action, 0.0), 4) for action in state.legal_actions()}
            largest = max(row, key=lambda action: row[action])
            row[largest] = round(1 - sum(share for action, share in row.items() if action != largest), 4)
            table[state.information_state_string()] = row
    return table


if __name__ == "__main__":
    folder = Path(__file__).parent / "tables"
    folder.mkdir(exist_ok=True)
    for name, count in ITERATIONS.items():
        rows = sorted(make_table(name, count).items())
        lines = ",\n".join(f" {json.dumps(state)}: {json.dumps(row)}" for state, row in rows)
        (folder / f"{name}.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")
        print(f"{name}: {len(rows)} information states after {count} iterations of CFR+")

"""Measure passing in the situations of FootballTeam: the scripted team against one scripted player
alone.

    python tests/benchmarks/football_team.py --records team.jsonl

`team`: the oracle of every agent. `alone`: the same script, without passes, for the player who
begins with the ball; the others press nothing. Both play the same test episodes; no picture is
drawn. Every episode is noted in the file of records, and an interrupted run goes on from there.
`--report` plays nothing.
"""

import json
from itertools import product
from pathlib import Path

from report import make_parser
from vlgym_football.engine import IDLE, Snapshot
from vlgym_football.plugin import TEAM
from vlgym_football.tactics import LOST_WORTH, TeamScript

import vlgym
from vlgym.env.seeding import episode_seed
from vlgym.games.table import Table
from vlgym.intervals import wilson_interval

ID = "vlgym/FootballTeam-v0"


class Alone(TeamScript):
    """The script of a player who never passes."""

    def _best_pass(self, now: Snapshot, attacker: int) -> tuple[float, str]:
        return LOST_WORTH, ""


def play(table: Table, side: str, index: int) -> str:
    """Play a test episode; return how it ended."""
    table.reset(seed=episode_seed(ID, "test", index))
    game, alone = table.game, Alone(table.game.match)
    while not table.over:
        if side == "team":
            actions = {seat: game.advise(seat) for seat in table.movers}
        else:
            actions = dict.fromkeys(table.movers, IDLE) | {0: alone.choose(0)}
        table.step({seat: game.parser.format([action]) for seat, action in actions.items()})
    return str(game.match.ending)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--players", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--report", action="store_true")
    chosen = parser.parse_args()
    lines = chosen.records.read_text().splitlines() if chosen.records.exists() else []
    endings = {tuple(line[:4]): line[4] for line in map(json.loads, lines)}
    settings = list(product(chosen.players, TEAM))
    for side, (players, scenario) in () if chosen.report else product(("alone", "team"), settings):
        table = vlgym.open_table(ID, players=players, scenario=scenario)
        table.remembers = set()
        for index in range(chosen.episodes):
            if (key := (players, scenario, side, index)) not in endings:
                endings[key] = play(table, side, index)
                with chosen.records.open("a") as file:
                    file.write(json.dumps([*key, endings[key]]) + "\n")
    for setting in settings:
        shares = []
        for side in ("team", "alone"):
            keys = [key for index in range(chosen.episodes) if (key := (*setting, side, index)) in endings]
            goals = sum(endings[key] == "goal" for key in keys)
            low, high = wilson_interval(goals, len(keys))
            shares.append(f"{side} {goals}/{len(keys)} ({low:.2f} to {high:.2f})")
        print(*setting, *shares, sep=" | ")


if __name__ == "__main__":
    main()

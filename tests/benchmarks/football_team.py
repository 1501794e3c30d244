"""Measure passing in the situations of FootballTeam: the scripted team against one scripted player alone.

    python tests/benchmarks/football_team.py --records team.jsonl

`team`: the oracle of every agent. `alone`: the same script, without passes, for the player who begins with the ball;
the others press nothing. Both play the same test episodes; no picture is drawn. Every episode is noted in the file of
records, and an interrupted run goes on from there. `--report` plays nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from vlgym_football.engine import IDLE, Snapshot
from vlgym_football.names import TEAM
from vlgym_football.tactics import LOST_WORTH, TeamScript

import vlgym
from vlgym.env.seeding import episode_seed
from vlgym.games.table import Table
from vlgym.intervals import wilson_interval

ID = "vlgym/FootballTeam-v0"
Setting = tuple[int, str]
"""Number of players, and situation."""


class Alone(TeamScript):
    """The script of a player who never passes."""

    def _best_pass(self, now: Snapshot, attacker: int) -> tuple[float, str]:
        return LOST_WORTH, ""


class Study:
    """Episodes that were played: whether a goal fell, by setting, side and number."""

    def __init__(self, records: Path, episodes: int, players: list[int]) -> None:
        self.records, self.episodes = records, episodes
        self.settings = [(count, scenario) for count in players for scenario in TEAM]
        self.goals: dict[tuple[Setting, str], dict[int, bool]] = {
            (setting, side): {} for setting in self.settings for side in ("alone", "team")
        }
        self._tables: dict[Setting, Table] = {}
        for line in records.read_text().splitlines() if records.exists() else ():
            count, scenario, side, index, ending = json.loads(line)
            if ((count, scenario), side) in self.goals and index < episodes:
                self.goals[(count, scenario), side][index] = ending == "goal"

    def left(self) -> Iterator[tuple[Setting, str, int]]:
        """The episodes to play: those of `alone`, which are quick, first."""
        for (setting, side), goals in sorted(self.goals.items(), key=lambda item: item[0][1]):
            yield from ((setting, side, index) for index in range(self.episodes) if index not in goals)

    def play(self, setting: Setting, side: str, index: int) -> None:
        """Play a test episode and note it."""
        if setting not in self._tables:
            self._tables[setting] = vlgym.open_table(ID, players=setting[0], scenario=setting[1])
            self._tables[setting].remembers = set()
        table = self._tables[setting]
        table.reset(seed=episode_seed(ID, "test", index))
        game, alone = table.game, Alone(table.game.match)
        while not table.over:
            if side == "team":
                actions = {seat: game.advise(seat) for seat in table.movers}
            else:
                actions = dict.fromkeys(table.movers, IDLE) | {0: alone.choose(0)}
            table.step({seat: game.parser.format([action]) for seat, action in actions.items()})
        ending = game.match.ending
        self.goals[setting, side][index] = ending == "goal"
        with self.records.open("a") as file:
            file.write(json.dumps([*setting, side, index, ending]) + "\n")

    def report(self) -> None:
        """Print a line for each setting."""
        for setting in self.settings:
            shares = []
            for side in ("team", "alone"):
                goals = [*self.goals[setting, side].values()]
                low, high = wilson_interval(sum(goals), len(goals))
                shares.append(f"{side} {sum(goals)}/{len(goals)} ({low:.2f} to {high:.2f})")
            print(*setting, *shares, sep=" | ")


def main() -> None:
    """Play the episodes that are missing, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--players", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--report", action="store_true")
    chosen = parser.parse_args()
    study = Study(chosen.records, chosen.episodes, chosen.players)
    if not chosen.report:
        for setting, side, index in study.left():
            study.play(setting, side, index)
    study.report()


if __name__ == "__main__":
    main()

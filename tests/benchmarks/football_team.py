"""Whether the situations of FootballTeam need a pass: the scripted team against one scripted player alone.

    python tests/benchmarks/football_team.py --episodes 20 --records team.jsonl --write

`team`: the oracle of every agent. `alone`: the same script for the player who begins with the ball, with passing
switched off; the others press nothing. Both play the same episodes of the test split, situation by situation; a
situation counts as needing a pass where the team scores in more of them. Two agents, default arguments. `--players 3`
or `4` plays more agents (and more opponents) instead. About ten minutes of a processor; with `--records` every finished
episode is noted in a file, and an interrupted run goes on from there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from football_oracle import describe_share
from report import finish, parse_write, table
from vlgym_football.actions import IDLE
from vlgym_football.names import TEAM
from vlgym_football.team_script import TeamScript

import vlgym
from vlgym.seeding import episode_seed

ID = "vlgym/FootballTeam-v0"
SIDES = ("team", "alone")
NEEDED = 10
"""Situations that must need a pass."""


@dataclass(frozen=True)
class Episode:
    """One episode: who played what, and how it ended."""

    side: str
    scenario: str
    players: int
    index: int
    ending: str
    decisions: int


def play(side: str, scenario: str, players: int, indices: list[int]) -> Iterator[Episode]:
    """Play episodes of the test split."""
    env = vlgym.parallel_env(ID, scenario=scenario, players=players, image_size=(32, 48))
    game = env.table.game
    alone = TeamScript(game.match, passing=False)
    for index in indices:
        env.reset(seed=episode_seed(ID, "test", index))
        count, infos = 0, {}
        while env.agents:
            actions = {
                seat: game.advise(seat) if side == "team" else alone.choose(0) if seat == 0 else IDLE
                for seat in range(players)
            }
            replies = {f"player_{seat}": game.parser.format([action]) for seat, action in actions.items()}
            *_, infos = env.step(replies)
            count += 1
        yield Episode(side, scenario, players, index, infos["player_0"]["ending"], count)
    env.close()


def main() -> None:
    """Play both sides in every situation and report."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--players", type=int, default=2)
    parser.add_argument("--records", type=Path, help="file of finished episodes, read and continued")
    chosen = parse_write(__doc__ or "", parser)
    lines = chosen.records.read_text().splitlines() if chosen.records and chosen.records.exists() else []
    known = [Episode(**json.loads(line)) for line in lines]
    rows, ahead, totals = [], 0, dict.fromkeys(SIDES, 0)
    for scenario in TEAM:
        goals = {}
        for side in SIDES:
            have = [e for e in known if (e.side, e.scenario, e.players) == (side, scenario, chosen.players)]
            have = [e for e in have if e.index < chosen.episodes]
            missing = sorted(set(range(chosen.episodes)) - {e.index for e in have})
            for episode in play(side, scenario, chosen.players, missing) if missing else ():
                have.append(episode)
                if chosen.records:
                    with open(chosen.records, "a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(episode)) + "\n")
            goals[side] = sum(e.ending == "goal" for e in have)
            totals[side] += goals[side]
        better = goals["team"] > goals["alone"]
        ahead += better
        shares = [describe_share(goals[side], chosen.episodes) for side in SIDES]
        rows.append([f"`{scenario}`", *shares, "yes" if better else "**no**"])
        print(rows[-1], flush=True)
    trials = chosen.episodes * len(TEAM)
    rows.append(["all", *(describe_share(totals[side], trials) for side in SIDES), f"{ahead} of {len(TEAM)}"])
    body = (
        f"`{ID}` with {chosen.players} agents, default arguments: test episodes 0 to {chosen.episodes - 1} of every "
        "situation, the same for both. Team: the oracle of every agent. Alone: the same script for the player who "
        "begins with the ball, who may not pass, while the others press nothing. Intervals: Wilson's 95 %; with "
        f"{chosen.episodes} episodes a difference of one or two goals says little.\n\n"
        + table(["situation", "team: episodes with a goal", "one player alone", "team ahead"], rows)
        + f"\n\nThe team is ahead in {ahead} of {len(TEAM)} situations; wanted were at least {NEEDED}. "
        "Situations in which it was not were replaced while they were made; that looked at test episodes 0 to 5, not "
        "at later ones. The lone player is this script, which tries shots on a copy of the match, but no runs: that no "
        "single player could score is not shown."
    )
    finish(
        "football_team", "Football for a team: does it need a pass?", body,
        ["vlgym", "vlgym-football", "gfootball", "numpy"], chosen.write,
    )  # fmt: skip


if __name__ == "__main__":
    main()
